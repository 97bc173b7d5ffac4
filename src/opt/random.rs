//! Random order. The generator is the 32-bit Mersenne twister with its usual seed, and a list is shuffled as GNU's C++ library (since
//! version 11) does it: the order of a dataset is the one that ggml gives where it is built with that library.

const N: usize = 624;
const M: usize = 397;

/// The generator MT19937.
pub struct Twister {
    state: [u32; N],
    next: usize,
}

impl Default for Twister {
    fn default() -> Self {
        Self::new(5489)
    }
}

impl Twister {
    /// The generator that starts with `seed`.
    pub fn new(seed: u32) -> Self {
        let mut state = [seed; N];
        for i in 1..N {
            let last = state[i - 1];
            state[i] = (last ^ last >> 30).wrapping_mul(1812433253).wrapping_add(i as u32);
        }
        Twister { state, next: N }
    }

    fn refill(&mut self) {
        for i in 0..N {
            let mixed = self.state[i] & 0x8000_0000 | self.state[(i + 1) % N] & 0x7fff_ffff;
            let odd = if mixed & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ mixed >> 1 ^ odd;
        }
        self.next = 0;
    }

    /// The next number.
    pub fn draw(&mut self) -> u32 {
        if self.next == N {
            self.refill();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c_5680;
        y ^= y << 15 & 0xefc6_0000;
        y ^ y >> 18
    }

    /// A number below `n`, each as likely: the high half of a product, drawn again where the low half would favour some.
    pub fn below(&mut self, n: u32) -> u32 {
        let mut product = u64::from(self.draw()) * u64::from(n);
        if (product as u32) < n {
            let threshold = n.wrapping_neg() % n.max(1);
            while (product as u32) < threshold {
                product = u64::from(self.draw()) * u64::from(n);
            }
        }
        (product >> 32) as u32
    }

    /// Puts `list`, of fewer than 2^32, into a random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        let n = list.len();
        if n == 0 {
            return;
        }
        if u32::MAX as usize / n < n {
            for i in 1..n {
                list.swap(i, self.below(i as u32 + 1) as usize);
            }
            return;
        }
        let mut i = 1;
        if n.is_multiple_of(2) {
            list.swap(1, self.below(2) as usize);
            i = 2;
        }
        // one draw gives the places of two
        while i < n {
            let places = i + 1;
            let both = self.below((places * (places + 1)) as u32) as usize;
            list.swap(i, both / (places + 1));
            list.swap(i + 1, both % (places + 1));
            i += 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The standard gives the ten thousandth number.
    #[test]
    fn the_generator_is_the_one_of_the_standard() {
        let mut twister = Twister::default();
        let last = (0..10_000).map(|_| twister.draw()).last();
        assert_eq!(last, Some(4123659995));
    }

    /// What std::shuffle of GNU's C++ library gives, since version 11, with std::mt19937.
    #[test]
    fn the_order_is_that_of_std_shuffle() {
        let mut twister = Twister::default();
        let mut list: [u8; 10] = std::array::from_fn(|i| i as u8);
        twister.shuffle(&mut list);
        assert_eq!(list, [2, 9, 0, 5, 4, 6, 7, 1, 3, 8]);
        twister.shuffle(&mut list);
        assert_eq!(list, [6, 4, 3, 1, 7, 2, 9, 8, 5, 0]);
        let mut odd: [u8; 7] = std::array::from_fn(|i| i as u8);
        Twister::default().shuffle(&mut odd);
        assert_eq!(odd, [3, 2, 4, 6, 1, 5, 0]);
    }

    #[test]
    fn a_shuffle_keeps_all_and_is_the_same_each_time() {
        for n in [0, 1, 2, 3, 10, 101, 70_000] {
            let shuffled = |times: usize| {
                let mut twister = Twister::default();
                let mut list: Vec<usize> = (0..n).collect();
                (0..times).for_each(|_| twister.shuffle(&mut list));
                list
            };
            let mut once = shuffled(1);
            assert_eq!(once, shuffled(1));
            assert!(n < 10 || once != shuffled(2) && once.iter().enumerate().any(|(i, &at)| i != at));
            once.sort_unstable();
            assert!(once.iter().enumerate().all(|(i, &at)| i == at));
        }
    }
}
