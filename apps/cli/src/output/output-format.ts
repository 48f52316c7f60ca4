/** The output formats. */
export const outputFormats = ["table", "yaml", "json", "name"] as const;

/** One of the output formats. */
export type OutputFormat = (typeof outputFormats)[number];
