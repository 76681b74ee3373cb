//! The ways in which an answer is cut into chunks.

/// Answers of up to this many characters are cut in every possible way.
const EXHAUSTIVE_CHARS: usize = 11;
/// The most cuts in two of a longer answer; of an answer with more characters, as many are drawn.
const CUTS_IN_TWO: usize = 1_024;
/// The chunkings with several cuts of a longer answer.
const SEVERAL_CUTS: usize = 128;

/// The byte offsets at which an answer is cut, in ascending order.
pub(super) type Cuts = Vec<usize>;

/// All chunkings of `text` that are tried, first the one without a cut. The drawn ones are the same in every run.
pub(super) fn chunkings(text: &str) -> Vec<Cuts> {
    let places = places(text);
    if places.len() < EXHAUSTIVE_CHARS {
        return (0..1u32 << places.len()).map(|set| chosen(&places, |at| set >> at & 1 == 1)).collect();
    }
    let mut random = Random(text.len() as u64 | 1);
    let mut all = vec![Vec::new(), places.clone()];
    all.extend(single(text).into_iter().map(|place| vec![place]));
    for _ in 0..SEVERAL_CUTS {
        // From few long chunks to many short ones.
        let one_in = 2 + random.below(places.len().min(64));
        all.push(chosen(&places, |_| random.below(one_in) == 0));
    }
    all
}

/// The places for one cut: all of them where they are few enough.
pub(super) fn single(text: &str) -> Cuts {
    let places = places(text);
    if places.len() <= CUTS_IN_TWO {
        return places;
    }
    let mut random = Random(text.len() as u64 | 1);
    (0..CUTS_IN_TWO).map(|_| places[random.below(places.len())]).collect()
}

/// Every place between two characters.
fn places(text: &str) -> Vec<usize> {
    text.char_indices().map(|(at, _)| at).skip(1).collect()
}

fn chosen(places: &[usize], mut is_cut: impl FnMut(usize) -> bool) -> Cuts {
    places.iter().enumerate().filter(|(at, _)| is_cut(*at)).map(|(_, place)| *place).collect()
}

/// Numbers that look random and are the same in every run (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_answers_are_cut_in_every_way() {
        assert_eq!(chunkings(""), [Vec::<usize>::new()]);
        assert_eq!(chunkings("aüb"), [vec![], vec![1], vec![3], vec![1, 3]]);
    }

    #[test]
    fn long_answers_are_cut_whole_by_character_once_at_each_place_and_at_random() {
        let text = "ü".repeat(100);
        let all = chunkings(&text);
        assert_eq!((all[0].len(), all[1].len()), (0, 99));
        let single: Vec<usize> = all[2..101].iter().map(|cuts| cuts[0]).collect();
        assert_eq!(single, (1..100).map(|at| at * 2).collect::<Vec<_>>());
        assert_eq!(all.len(), 101 + SEVERAL_CUTS);
        assert!(all[101..].iter().all(|cuts| cuts.is_sorted() && cuts.iter().all(|at| text.is_char_boundary(*at))));
        assert_eq!(all, chunkings(&text));
        assert_eq!(chunkings(&"a".repeat(5_000)).len(), 2 + CUTS_IN_TWO + SEVERAL_CUTS);
    }
}
