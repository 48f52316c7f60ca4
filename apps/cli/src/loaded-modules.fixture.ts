import { writeSync } from "node:fs";
import { registerHooks } from "node:module";

/*
 * Imported before a program (`node --import`): at its end, writes the URL of each module that it has loaded to the file
 * descriptor 3, one a line.
 */

const urls: string[] = [];
registerHooks({
	load(url, context, next) {
		urls.push(url);
		return next(url, context);
	},
});
process.on("exit", () => writeSync(3, `${urls.join("\n")}\n`));
