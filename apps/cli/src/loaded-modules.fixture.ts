import { writeSync } from "node:fs";
import { registerHooks } from "node:module";

/*
 * Imported before a program (`node --import`): at its end, writes the URL of each module that it has loaded to the file
 * descriptor 3, one a line, and the names of the internal modules of Node.js.
 */

const urls: string[] = [];
registerHooks({
	load(url, context, next) {
		urls.push(url);
		return next(url, context);
	},
});
process.on("exit", () => {
	const internal: readonly string[] = Reflect.get(process, "moduleLoadList");
	writeSync(3, `${[...urls, ...internal].join("\n")}\n`);
});
