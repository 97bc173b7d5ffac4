//! What came of the batches so far.

use crate::error::Error;

/// One evaluation, as a result takes it up.
pub struct Batch {
    /// Datapoints.
    pub n: i64,
    /// The loss: of a datapoint on average, divided by the period, or of all.
    pub loss: f32,
    /// The loss is that of a datapoint.
    pub per_datapoint: bool,
    /// Backward passes for a step.
    pub period: i32,
    /// The class predicted for each datapoint, where there are classes.
    pub predictions: Vec<i32>,
    /// How many predictions are right; `None`: not known.
    pub n_right: Option<i64>,
}

/// A result.
#[derive(Default)]
pub struct Outcome {
    n: i64,
    losses: Vec<f32>,
    predictions: Vec<i32>,
    /// `None`: not known for some batch.
    n_right: Option<i64>,
    per_datapoint: bool,
    period: i32,
}

impl Outcome {
    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = Outcome::default();
    }

    /// Takes up an evaluation; all must be of one size and kind.
    pub fn add(&mut self, b: Batch) -> Result<(), Error> {
        let first = self.losses.is_empty();
        if !first && (self.per_datapoint, self.period) != (b.per_datapoint, b.period) {
            return Err(Error::argument("the result holds evaluations of another loss type or period: reset it"));
        }
        let size = self.n / self.losses.len().max(1) as i64;
        if !first && size != b.n {
            let text = format!("the result holds batches of {size} datapoints and cannot take one of {}", b.n);
            return Err(Error::argument(text));
        }
        self.losses.try_reserve(1)?;
        self.predictions.try_reserve(b.predictions.len())?;
        self.n_right = match (if first { Some(0) } else { self.n_right }, b.n_right) {
            (Some(sum), Some(n)) => Some(sum + n),
            _ => None,
        };
        (self.per_datapoint, self.period) = (b.per_datapoint, b.period);
        self.n += b.n;
        self.losses.push(b.loss);
        self.predictions.extend(b.predictions);
        Ok(())
    }

    /// Datapoints.
    pub fn n(&self) -> i64 {
        self.n
    }

    /// The predictions, batch by batch.
    pub fn predictions(&self) -> &[i32] {
        &self.predictions
    }

    /// The loss of a datapoint on average and the standard error of that mean, or the loss of all datapoints and the standard deviation
    /// of batches. NaN for the second with fewer than two batches.
    pub fn loss(&self) -> (f64, f64) {
        let n = self.losses.len() as f64;
        if self.losses.is_empty() {
            return (0.0, f64::NAN);
        }
        let scale = if self.per_datapoint { f64::from(self.period) } else { 1.0 };
        let losses = || self.losses.iter().map(|&loss| f64::from(loss) * scale);
        let sum: f64 = losses().sum();
        let mean = sum / n;
        // squares of differences, since a difference of squares can come out negative
        let variance = losses().map(|loss| (loss - mean).powi(2)).sum::<f64>() / n;
        match (n < 2.0, self.per_datapoint) {
            (few, true) => (mean, if few { f64::NAN } else { (variance / (n - 1.0)).sqrt() }),
            (few, false) => (sum, if few { f64::NAN } else { (variance * n / (n - 1.0)).sqrt() }),
        }
    }

    /// The share of right predictions and its uncertainty; NaN when it is not known.
    pub fn accuracy(&self) -> (f64, f64) {
        let known = if self.losses.is_empty() { Some(0) } else { self.n_right };
        let Some(n_right) = known else { return (f64::NAN, f64::NAN) };
        let share = n_right as f64 / self.n as f64;
        let uncertainty = match self.n >= 2 {
            true => (share * (1.0 - share) / (self.n - 1) as f64).sqrt(),
            false => f64::NAN,
        };
        (share, uncertainty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(loss: f32, n_right: Option<i64>) -> Batch {
        Batch { n: 4, loss, per_datapoint: true, period: 2, predictions: vec![1; 4], n_right }
    }

    #[test]
    fn means_and_uncertainties() {
        let mut o = Outcome::default();
        assert!(o.loss().0 == 0.0 && o.loss().1.is_nan() && o.accuracy().0.is_nan());
        o.add(batch(1.0, Some(4))).unwrap_or_default();
        assert!(o.loss().0 == 2.0 && o.loss().1.is_nan());
        o.add(batch(2.0, Some(2))).unwrap_or_default();
        // losses 2 and 4: variance 1 over 2 batches
        assert_eq!(o.loss(), (3.0, 1.0));
        let (share, uncertainty) = o.accuracy();
        assert!(share == 0.75 && (uncertainty - (0.75f64 * 0.25 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!((o.n(), o.predictions().len()), (8, 8));
        assert!(o.add(Batch { n: 5, ..batch(1.0, None) }).is_err());
        assert!(o.add(Batch { period: 1, ..batch(1.0, None) }).is_err());
        assert_eq!(o.n(), 8);
        o.add(batch(3.0, None)).unwrap_or_default();
        assert!(o.accuracy().0.is_nan());
        o.reset();
        assert!(o.n() == 0 && o.predictions().is_empty());
    }

    #[test]
    fn sums() {
        let mut o = Outcome::default();
        for loss in [1.0, 3.0, 5.0] {
            o.add(Batch { per_datapoint: false, ..batch(loss, None) }).unwrap_or_default();
        }
        let (sum, uncertainty) = o.loss();
        // squares 4, 0 and 4 over 2
        assert!(sum == 9.0 && (uncertainty - 2.0).abs() < 1e-12);
    }
}
