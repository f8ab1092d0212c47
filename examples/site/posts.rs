//! The posts of the site, which a real one has in its database.

/// The posts: an id, which is the subject on the board, a title, and the first sentence.
pub const POSTS: [(&str, &str, &str); 12] = [
    ("ten-soups", "Ten soups for November", "Lentils first. Everything else in this list is an argument with lentils."),
    ("night-trains", "The night trains are back", "Three new routes, one old dining car, and hardly any sleep."),
    ("compost", "The quiet art of compost", "It takes a year, and you cannot hurry it. That is the point."),
    ("small-keyboard", "I removed forty keys", "The first week was slow. The second was slower."),
    (
        "lighthouse",
        "A winter in the lighthouse",
        "The lamp has been electric since 1962. Somebody still has to be there.",
    ),
    ("sourdough", "Sourdough for impatient people", "You can keep your job and still bake on a Tuesday."),
    ("old-maps", "What old maps leave out", "The blank parts were rarely unknown. They were somebody else's."),
    ("bicycle", "One bicycle, eleven repairs", "Nothing is original any more, apart from the squeak."),
    ("chess-park", "The chess players of the park", "They do not say hello. They say: your move."),
    ("radio", "Building a radio without a kit", "A coil, a diode and the patience to hear one station."),
    ("moss", "Moss is winning", "On the north side of every wall in town, a slow green vote."),
    ("letters", "A year of writing letters", "Fifty-two letters, nineteen replies, one new friend."),
];
