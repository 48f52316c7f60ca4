/** How something is colored: whether it is well, not, or perhaps not. */
export type Tone = "plain" | "good" | "unsure" | "bad";
