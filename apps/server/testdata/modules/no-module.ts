/** Looks like a module, but was not created by `defineModule`. */
const lookalike = { name: "music", types: [] };

// biome-ignore lint/style/noDefaultExport: the test is about the default export.
export default lookalike;
