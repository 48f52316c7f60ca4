/** The output formats. */
export const outputFormats = ["table", "yaml", "json", "name"] as const;

/** One of the output formats. */
export type OutputFormat = (typeof outputFormats)[number];

/** The output formats of commands that print resources as rows. `wide` is a table with more columns. */
export const resourceFormats = [...outputFormats, "wide"] as const;

/** One of the output formats of commands that print resources as rows. */
export type ResourceFormat = (typeof resourceFormats)[number];
