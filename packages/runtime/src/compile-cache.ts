// The default export: a named import of what an older Node.js lacks would fail before the program can say which it needs.
import nodeModule from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

/**
 * Keeps the compiled code of this program in the user's cache folder, so that its next start need not compile again.
 * Call it before most modules are loaded. Without a folder to write to, programs start without it. Node.js writes the
 * code when the process exits, checks it against the source when it reads it, and has two variables for it:
 * `NODE_COMPILE_CACHE` names another folder, `NODE_DISABLE_COMPILE_CACHE=1` turns it off.
 *
 * The folder is the user's own because others could put code into a shared one, such as `/tmp`.
 *
 * @see {@link https://nodejs.org/api/module.html#module-compile-cache}
 */
export function keepCompiledCode(): void {
	const { env } = process;
	if (env.NODE_COMPILE_CACHE) {
		return;
	}
	const folder = cacheFolder(env, process.platform);
	if (folder !== undefined) {
		nodeModule.enableCompileCache(join(folder, "plinth", "compile-cache"));
	}
}

/** The folder for caches of the user's programs; `undefined` if the user has no home. */
export function cacheFolder(
	env: Readonly<Record<string, string | undefined>>,
	platform: string,
): string | undefined {
	if (env.XDG_CACHE_HOME) {
		return env.XDG_CACHE_HOME;
	}
	if (platform === "win32") {
		return env.LOCALAPPDATA;
	}
	const home = env.HOME || homedir();
	if (home === "" || home === "/") {
		return undefined;
	}
	return platform === "darwin" ? join(home, "Library", "Caches") : join(home, ".cache");
}
