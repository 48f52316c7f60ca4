/**
 * Removes the fault points from the compiled package: the last step of its build.
 *
 *     node src/mutants/remove-fault-points.ts dist
 */
import { globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withoutFaultPoints } from "./without-fault-points.fixture.ts";

const [folder = "dist"] = process.argv.slice(2);
for (const file of globSync("fault-points.*", { cwd: folder })) {
	rmSync(join(folder, file));
}
for (const file of globSync("**/*.js", { cwd: folder })) {
	const path = join(folder, file);
	const compiled = readFileSync(path, "utf8");
	const cleaned = withoutFaultPoints(path, compiled);
	if (cleaned !== compiled) {
		writeFileSync(path, cleaned);
	}
}
