//! Blocks as upstream's reference quantisers write them, for one input that is exact in f32. Bytes are for little-endian
//! machines.
#![cfg(target_endian = "little")]
#![allow(clippy::unwrap_used)]

mod common;

use common::{Rng, CODEBOOK_TYPES};
use ggml_oxide_types::{quantize_rows, to_f32, Type};

fn values() -> Vec<f32> {
    (0..256u32).map(|i| ((i * i * 37 + i * 11) % 257) as f32 / 64.0 - 2.0 + (i / 64) as f32 * 0.25).collect()
}

fn importance() -> Vec<f32> {
    (0..256u32).map(|i| ((i * 29) % 31) as f32 / 8.0).collect()
}

/// Format, elements, with importance weights, bytes in hex.
#[rustfmt::skip]
const GOLDEN: &[(Type, usize, bool, &str)] = &[
    (Type::Q4_0, 64, false, "\
        003490537bd7786da726f9117d2e145eedb16033ddd30fbe81bb18ebf03dddb0ea571a10"),
    (Type::Q4_0, 64, true, "\
        033490537bd7786da726f9117d2e145eedb10d34cdc31eae82bb28eae13cdcb1ea571a21"),
    (Type::Q4_1, 64, false, "\
        153400c090537ac7776da726f9117d2e145eddb13c3360bfddd30fbf92bb29fbf03dddb0fa581a10"),
    (Type::Q4_1, 64, true, "\
        023407c090537bd7786da726f9117d2e145eedb1713311bfcdc20eae81bb18eae02cdcb0e9570910"),
    (Type::Q5_0, 64, false, "\
        0030246d49c110b6d59eefda4e5bf222eb4d28adca61602fed56bb1d9a951d5d136631d5d159a960c4af1420"),
    (Type::Q5_0, 64, true, "\
        2230246d49c111b6d59eefda4e5ce222ea4c38acba628b2fed56bb1d9a961d5c136631c5d169a960c4af1430"),
    (Type::Q5_1, 64, false, "\
        e72f00c0246d49c120b6e6aeefda4e5cf222eb4d28adcb61002f60bfed76bb1dacb61f6e237732e6f16bca80e5a01530"),
    (Type::Q5_1, 64, true, "\
        e62f16c0346d49c120b6e6aef0db5f5cf222fb4d38bdcb61402f77bfed56bb1daba61e6d137731d6e16aba70d4af1430"),
    (Type::Q8_0, 64, false, "\
        082481b12aedfa50f1db0f8d5364c063518a0bd6eb49f2e420a6748ef09d93d25b2f6f2352ac6b6499320529874a48811ef6\
        1e81484a8729053299646bac523363ce8a94"),
    (Type::Q8_1, 64, false, "\
        08248dc481b12aedfa50f1db0f8d5364c063518a0bd6eb49f2e420a6748ef09d93d25b2f6f23bc3e52ac6b6499320529874a\
        48811ef61e81484a8729053299646bac523363ce8a94"),
    (Type::Q2_K, 256, false, "\
        fecdedccbeac7cce9d7f6d7e5f8e6d3cdc85fe0de2db1ab9929c2fc3f93b9bb0fe0de1db59f9a2dc6f000d48ecc503925539\
        2261c0a9e722dac00e92878100e4e12c80a9a636dac012e29bd565093675112d2e30"),
    (Type::Q2_K, 256, true, "\
        bbdcfddcacbc8cbcac9b698c5eaf6d4cdc84fe0de1db19b9929c2fc3f83b8bb0fe0de1db19f9a2dc6f000d48ecc50392553d\
        2261c0a9e726dac00e928b8100e8e22c80a9a736dbc013e39bd6650d3776312d9d2f"),
    (Type::Q3_K, 256, false, "\
        9694a3be71172ea24576cb25427bf710279b75122fa74477ee294b4b97d1a8240cb54d6f340b8357c198bb735683a7c0b899\
        11368079874f6ce7cc5b0f69d1c73d899619165860560d1b527a9c65471e6b626aac65520a160966480f3c6451c3b6584646\
        28065717030c03037025"),
    (Type::Q3_K, 256, true, "\
        9694a3be71172ea24576cb25427bf710279b75122fa74477ee294b4b17d1a8244cb54d6f644b4397c198bb735683a7c07899\
        15368075874f6debd8570f2de5c73d85951916586056091b517a9c65471e2b626aad645209160925480ffd6450c3c5a68659\
        3909524a030c03036525"),
    (Type::Q4_K, 256, false, "\
        481c1f28fdf7fdfdbfb7b8b1cc6a4c3fd023ebe718bd87a609c1cd0ea47ead01c9c507ac87b61ae2ef21d7b2e1550e1be7b1\
        df42fae637cd97b529d1dd2eb49ebd21d9e637cda8c74b030052f8d3027664b53a0422954d498a10fa198c34318218f21185\
        4d4a9b210c3bbf6775c66c47570f0b4cc1abca3dd5d122b892b124dcd92ab09ab93de5e244dab5e458202d7f"),
    (Type::Q4_K, 256, true, "\
        2f1c1428fdf9fffebfb7b8b2ca795e2fd023ebe718bd87a609c1cd0e947e9d01c9c507ad87b61ae2ef21d7b2e1450e1be7b1\
        df42fae637cc97b529d1dd2eb49ebd21e9e637cda8d74a030052f8d3027674b53a0422964e4a9b10fb198d34318218f21195\
        4e4a9c210d3cbf7875d76d48570f0b4cc1abca3de5d122b892b124dcd92ab09ab93de5e244dab5e458102d7f"),
    (Type::Q5_K, 256, false, "\
        18181c28fef7fdffbfbab6b4dd5a5d3c4a685f428debd25eb98a37d9be870becdf628cebd25eb98a17d0b2924e285149c066\
        f6ee307b2e6c12b2ab0d580d5b01a2bb1e6a2f7d34e5ff62ce84e2ab1c36de72bf85e4ed6e8a3e7b52b1bb4d782d7b51c2cc\
        6e9b5fae960610b3e0b5140dd86a6508453b8b841620f5120969620410f5221a8b84374309676fd0ea9dba8fb01f0799b357\
        a46bdad25480347249c9c2558046946bfbf588c58ae8c0315cff"),
    (Type::Q5_K, 256, true, "\
        23182128fdf8fffbbfbab7b2db496d3c4a685f428debd25eb98a37d9be850becdf628cebd25eb98a17d0b2924e285159b066\
        e6de307b1f6c12a2ab0d48fd4b01a2ab1e6a1f7d35d5ef62be74d3ab1c36ee82ce85f4fc6e994d8b51c1ca4c783c8a52d2eb\
        6eaa6fbe950610b3f0c5040cd96a6508453c8c741620f5130a69620411f5231a7c85384309686fd0ea9dbb80b01f0799b357\
        946bdad35570347249c9c2558046946bebf588c58ae8c0315cff"),
    (Type::Q6_K, 256, false, "\
        007c1a1b5f340cb71463a5899059b452cd4b96ac04b837f900ef148b4edda7c335db6ba9061dd1ca52d30250681ee870e3f3\
        514bd1bd259a9c8a654d1a7371c47705cea8bec100600cb88d7284c62590490ce0f32772ed7f3b1d002a74de691adceef61f\
        49d36354061d709e17a787275e70bd26a44323192f66be3cda897e842c300ebd112ba909622cdf3309c72b403d8e2218aa3a\
        611fbcc3ce8b2f06c0515682888a2a061889242ba019642aab0719922b461889142aa818202556a184495eaa56549b549c99\
        a8928f8f86808f807811"),
    (Type::Q6_K, 256, true, "\
        008b0b2b4e350ca61462969a8f4ac541dd3b96ac04c837f910df047b4ecd97c325db6ba9061dd1ca51d30250681ee870e3f3\
        514bd1bd259a9c8a654d1a7371c47705cea8bec100600cb88d7284c62590490ceff32772ed7f3b1d002a74de691adceef710\
        49d36354051d709e17a787274e70ad16945303092f46ae1cca997e742c300ebd112ba909622cdf3308c72b403d8e2218aa3a\
        611fbcc3ce8b2f06c0515682888e2a061889242ba019642aab0719922a461889142aa818202556a184495aaa56549f519c99\
        a891918f86808f877711"),
    (Type::Q8_K, 256, false, "\
        ae56abbc603ce10e04c30b1cf557c1b531b5c359f81f10c90a15e844a9560c4b5222bbddc73ab6bb48defce454ccce58eb07\
        eb58cecc54e4fcde48bbb63ac7ddbb22524b004a9d38dc09ffbd0413ec4db7a925a9b54be910ffb8f902d5305440f6343a0a\
        a2c3ac1f9a9d2abfddc333abac35c7e2c632a7a52bbbd2b31c4e490d99ae4bf2150dcd162803a6d2c745cbdab2123b2de72b\
        370ba9cfbe35b5be90ea0df9aeebf1c0173720d20c0fdb2f8c32e11818e1328c2fdb0f0cd2203717c0f1ebaef90dde84b2a9\
        29b2c39dff2b1fdb212f06a6cebf39bbc69af71c0ac10109da349681f53137049bbba3138d8f1aaecaaf1d94931bacc5a712\
        85820794ab8af2221cde3d009d00f3ffbdff3effb20058fdf3fe85ff4bfec6ff73ff18feeefd7bfdbdfc"),
    (Type::IQ4_NL, 64, false, "\
        492490526bd6776da725f9117d2e134eedb12623ded20fbf81cc18fbf02dedc0fa470a10"),
    (Type::IQ4_NL, 64, true, "\
        4c2490526bd6776da725f9117d2e134eedb13923ded20fbf81cc18fbf02dedc0fa470a10"),
    (Type::IQ4_XS, 256, false, "\
        8d110f005977360190536bd6776da725f9117d2e134eedb1ded20fbf81cc18fbf02dedc0fa470a1028ee50ad8429788248ca\
        f6ee72d1db9130d2111bc0204c12b4e2ed91011de3655ac9d39a1c3821d4232e0364927a1d6cc703ca5c9b9449b9c5ac307c\
        652a7a954530c2323b1273a1983b8a955bcc180217ac2c482193020981112a1274b2aa51"),
    (Type::IQ4_XS, 256, true, "\
        9a110f005987370290536bd6776da725f9117d2e134eedb1ded20fbf81cc18fbf02dedc0ea470a1028ee60ad8429788248ca\
        f6de72d1db9120d2110bc0203c12b4e2ed91011de3655ac9d39a1c3821d4232e0364917a1d6cc703ca5c9b9449b9c5ac307c\
        652a7a954530c2323b1273a1983b8a955bcc180217ac2c482193020981112a1274b2aa51"),
    (Type::TQ1_0, 256, false, "\
        2e76a99c6783818d642a80b38edf801889766783818d654af32974214a83b76480fe898d818e81898181f281809d838ef188\
        faa55041"),
    (Type::TQ2_0, 256, false, "\
        9445a959919555a551545582a56655606545919555a551985a140544989512515569656595a5966595945995569555a59569\
        95659665969556969a95555966655041"),
    (Type::MXFP4, 64, false, "\
        7e1ebc934990a529da61ee95d5dcb5553e7d666ef7471f55f1747fe6665f73d9f3ff"),
    (Type::NVFP4, 128, false, "\
        2b2a2a291ffe646ad96669fb71fcaae6f9cb634ef65e56f63e9430f476e66f5471d5fff72b292b2c00ae27ed6479c07657ef\
        f3ea20e7e1904766d77c77d75d46b5ede6977c66e526"),
    (Type::Q1_0, 256, false, "\
        543c246d49c1ed56bb1dd5b47511b7dbedb0493cc41d71ef23954a7cef897bd271bbdd9e"),
    (Type::Q2_0, 128, false, "\
        00405059a12895151264a25428154a85620650402195159a525905416a9a9962a699414a"),
    (Type::IQ2_XXS, 256, true, "\
        1c2421a98a55dbc9cdc732d6ecef921451ac89e53b50aba5c6cd62bdaa5f4892e4dbc558bd701bb103b30c10b13b1c75e5c0\
        9fdca9fb803ba1d561e2cf9f0ea208fc"),
    (Type::IQ2_XS, 256, true, "\
        672444b6d527086f827d3f24ca53e489b8c59d57c2976e34dfdcfd91c048b625f7be7a375fc5591d8b300e3816d4082a6f0e\
        d501ffee4309df5bbf1cdc89e6451dc0ab8b89aae9bcdfec"),
    (Type::IQ2_S, 256, false, "\
        9f2453c63da05fc1dae60a90532c4543344c0fbbde7d0e16e0a23521c2ecc280e46fdb92b63e12a944e22a4b8aee4824124f\
        3be28e10dc6ab5831076842d8e4422617cfe4e666b00ca3d9a89abdfb8bccfcc"),
    (Type::IQ2_S, 256, true, "\
        bc2553c6e3a05fc18ca40a9053e3df43c7d4f8bbde7d0e16e0a235d8c2ec4c80ab13db92b63e12a944e22a4b8aee4824124f\
        3be28e10dc6ab5831076842d8e4422615cae0e766a00c63d889788798789acf9"),
    (Type::IQ3_XXS, 256, false, "\
        9a1e5540bdd196b5cc82c042e4df5bd282bfadc6c9e27c44c0545cb9ce82e8d1322c51a7837f54828b2f9741ac6e507d2944\
        c1d16fc6a17112ff1b82b9ce82e6e747dbc94dc7921451bcaba5c6bd4892e4b81bb103c61c7565c8913ba1d50ea208fc"),
    (Type::IQ3_XXS, 256, true, "\
        311e1140b7d18d94cc27c042e4c95bd282d9adc6c9e27c44e8595cb9ce82e8d132325789bea631a38b88b741ac6e817d0444\
        d5e370c6a17106e81b5cb9cea6e6e76ddbc9cde7921451ccaba5c6bd4892e4cb1bb103a31c75e5c0803ba1e50ea208fc"),
    (Type::IQ3_S, 256, false, "\
        421e36d2d8d45ea49a4fb9e1f4e7b9b6acb7916593cb96128ba9ba76ca02d7a8b55c994e40f49e02c0af2e7759e043f24a12\
        85d3e995401332fe3e5a9aca46d9d883fcad4f3e26159b7cdb92b63e12a944e22a4b8aee4824124f3be28e10dc6ab5831076\
        842d8e442261bbcbddfe"),
    (Type::IQ3_S, 256, true, "\
        631e36d5d8f55ea49a57b9e1f4c4b9b302b7919293cb9614ba4fba76ca02d7a8b55c990e40f44002b9af2e7759e043f29d12\
        85cadd9540130afe3e5a6eca46d9d4837ced4f3e26159b7cdb92b63e12a944e22a4b8aee4824124f3be28e10dc6ab5831076\
        842d8e442261bacbcdfe"),
    (Type::IQ1_S, 256, true, "\
        a4318e7e4ff4db345446c44887864cdfdb36947b2d2a5b8f1685dd60b26a8937c8226cc88fc13645e647874a9438374ffdf9"),
    (Type::IQ1_M, 256, false, "\
        6a494ff42d345446c44887314c84db4494462ddd7ef4ff8fdd60b2688537c822acc9968e6684766707423cc3677c75cf2419\
        1c29632b6c3f"),
    (Type::IQ1_M, 256, true, "\
        8e744ff4e2345446c44887cf4cdfdb36947b2d2a5bca168fdd60b26a8537c8224cc9938e66a446370f525442677cf5cf23e7\
        24a9a418ac3f"),
];

#[test]
fn encoders_give_the_reference_bytes() {
    let (x, w) = (values(), importance());
    // The codebook searches are far too slow for Miri.
    let here = |ty: &Type| !(cfg!(miri) && CODEBOOK_TYPES.contains(ty));
    for &(ty, n, weighted, hex) in GOLDEN.iter().filter(|g| here(&g.0)) {
        let mut out = vec![0xa5; ty.row_bytes(n).unwrap()];
        let imatrix = weighted.then_some(&w[..n]);
        let written = quantize_rows(ty, &x[..n], &mut out, 1, n, imatrix).unwrap();
        assert_eq!(written, out.len());
        let got: String = out.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(got, hex, "{ty} weighted {weighted}");
    }
}

/// 64 blocks of four kinds, and weights.
fn many() -> (Vec<f32>, Vec<f32>) {
    let mut rng = Rng(2024);
    let x = (0..64 * 256)
        .map(|i| match i / 256 % 4 {
            0 => rng.normal(),
            1 => rng.normal() * rng.normal() * 0.03,
            2 => rng.unit() * 100.0 - 30.0,
            _ => ((rng.next() % 33) as f32 - 16.0) / 8.0,
        })
        .collect();
    (x, (0..256).map(|_| rng.unit() + 0.01).collect())
}

/// FNV-1a of what the reference quantisers make of `many`.
const DIGESTS: &[(Type, bool, u64)] = &[
    (Type::IQ2_XXS, true, 0x5da6_d573_2bee_bebf),
    (Type::IQ2_XS, true, 0xec25_dbd1_c7c2_c712),
    (Type::IQ2_S, false, 0x8623_66db_4f79_560b),
    (Type::IQ2_S, true, 0x27ca_9fe5_1d29_24ff),
    (Type::IQ3_XXS, false, 0x80d4_3c21_ec40_e092),
    (Type::IQ3_XXS, true, 0x245f_9e8f_f36e_ed1e),
    (Type::IQ3_S, false, 0x1317_b76d_febe_14bc),
    (Type::IQ3_S, true, 0x9707_b10b_ba16_c20d),
    (Type::IQ1_S, true, 0xb88a_1e1a_baea_0f35),
    (Type::IQ1_M, false, 0x589f_cd53_8ab4_1d42),
    (Type::IQ1_M, true, 0xb60f_7846_21ec_a6ce),
    (Type::IQ4_NL, false, 0x827e_6835_2179_ca85),
    (Type::IQ4_NL, true, 0xcc3e_db3f_e76e_a622),
    (Type::IQ4_XS, false, 0xc601_2d0e_1cce_7699),
    (Type::IQ4_XS, true, 0xf7a4_b70e_db87_0c0f),
    (Type::TQ1_0, false, 0x1f8a_dc6e_ed93_f39d),
    (Type::TQ2_0, false, 0x555d_3c8b_9236_1110),
    (Type::MXFP4, false, 0x8e6d_b80f_99e5_4f73),
    (Type::NVFP4, false, 0xb598_a2d7_c62a_07bf),
    (Type::Q1_0, false, 0x9bac_180c_9a9f_d339),
    (Type::Q2_0, false, 0x1cf4_dc8d_e2d3_6799),
];

// All safe code, and far too slow for Miri.
#[cfg_attr(miri, ignore)]
#[test]
fn many_blocks_give_the_reference_bytes() {
    let (x, w) = many();
    for &(ty, weighted, digest) in DIGESTS {
        let mut out = vec![0; ty.row_bytes(x.len()).unwrap()];
        quantize_rows(ty, &x, &mut out, 64, 256, weighted.then_some(&w[..])).unwrap();
        let got = out.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, &b| (h ^ b as u64).wrapping_mul(0x100_0000_01b3));
        assert_eq!(got, digest, "{ty} weighted {weighted}");
    }
}

/// The quick conversion of iq4_nl, which copies use, is another than the one that files are made with.
#[test]
fn iq4_nl_without_a_search_gives_the_reference_bytes() {
    let mut out = vec![0xa5; 36];
    ggml_oxide_types::from_f32(Type::IQ4_NL, &values()[..64], &mut out).unwrap();
    let got: String = out.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(got, "1b2490526bd6776eb725f9117e1e134eeec05a23ded20fbe81cc18ebf02dedc0ea470a10");
}

#[test]
fn decoders_invert_the_reference_bytes() {
    let x = values();
    // Points of a grid have no step; tests/codebook.rs bounds their error.
    for &(ty, n, weighted, hex) in GOLDEN.iter().filter(|g| !CODEBOOK_TYPES.contains(&g.0)) {
        let bytes: Vec<u8> =
            (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
        let mut y = vec![0.0; n];
        to_f32(ty, &bytes, &mut y).unwrap();
        // The step of the coarsest group; importance weights may give up single elements.
        let bits = match ty {
            Type::Q2_K => 2,
            Type::Q3_K => 3,
            Type::Q4_0 | Type::Q4_1 | Type::Q4_K => 4,
            Type::Q5_0 | Type::Q5_1 | Type::Q5_K => 5,
            Type::Q6_K => 6,
            // Values that lie closer around zero have wider steps at the ends.
            Type::IQ4_NL | Type::IQ4_XS | Type::MXFP4 | Type::NVFP4 => 3,
            // A sign, or three values for the largest of a block: half its size is lost.
            Type::Q1_0 | Type::Q2_0 | Type::TQ1_0 | Type::TQ2_0 => 1,
            _ => 8,
        };
        let step = 6.0 / ((1 << bits) - 1) as f32;
        for (a, b) in x.iter().zip(&y) {
            assert!((a - b).abs() <= if weighted { 1.6 * step } else { step }, "{ty}: {a} {b}");
        }
    }
}
