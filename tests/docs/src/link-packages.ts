/**
 * Links the dependencies of each package in `./examples` that is not linked as a whole, and nothing else,
 * from the packages that are installed for the tests.
 */
import { existsSync, globSync, mkdirSync, readFileSync, realpathSync, symlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const installed = join(import.meta.dirname, "../node_modules");

for (const manifest of globSync("examples/*/package.json")) {
	if (realpathSync(manifest) === join(realpathSync("."), manifest)) {
		const {
			dependencies = {},
			devDependencies = {},
		}: Record<string, Record<string, string>> = JSON.parse(readFileSync(manifest, "utf8"));
		for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
			const link = resolve(dirname(manifest), "node_modules", name);
			if (!existsSync(link)) {
				mkdirSync(dirname(link), { recursive: true });
				symlinkSync(realpathSync(join(installed, name)), link);
			}
		}
	}
}
