/**
 * The folder of the console's files: a page, and what it loads. It is missing in a clone of the repository in which the
 * console has not been built.
 */
export const consoleFolder: URL = new URL("../dist/page/", import.meta.url);

/** The program that builds the console. It exists only in a clone of the repository. */
export const consoleBuild: URL = new URL("../build/build.ts", import.meta.url);
