import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { otherCheckout } from "@plinth/bench";

/** How Node.js starts each `plinth` that is compared, by name. */
export const programs: Readonly<Record<string, readonly string[]>> = {
	...mains("", fileURLToPath(new URL("../", import.meta.url))),
	...mains("other checkout, ", otherCheckout("apps/cli")),
};

/** From the sources and, where the package and those that it depends on have been built, as published. */
function mains(prefix: string, folder: string | undefined): Record<string, readonly string[]> {
	if (folder === undefined) {
		return {};
	}
	const built = join(folder, "dist/main.js");
	return {
		...(existsSync(built) && { [`${prefix}built`]: ["--conditions=plinth-dist", built] }),
		[`${prefix}sources`]: [join(folder, "src/main.ts")],
	};
}

/** The home of the user who runs the programs, where their compiled code is kept. */
const home = await mkdtemp(join(tmpdir(), "plinth-bench-"));

/** Removes what the programs have kept. */
export function removeHome(): Promise<void> {
	return rm(home, { recursive: true });
}

/** Runs Node.js to its end. Resolves to the milliseconds that it took. */
export async function runNode(args: readonly string[]): Promise<number> {
	const startMs = performance.now();
	const child = spawn(process.execPath, args, {
		env: { PATH: process.env.PATH, HOME: home },
		stdio: ["ignore", "ignore", "pipe"],
	});
	let err = "";
	child.stderr.setEncoding("utf8").on("data", (text: string) => {
		err += text;
	});
	const code = await new Promise((resolve) => child.once("close", resolve));
	if (code !== 0) {
		throw new Error(`${args.join(" ")} has ended with ${code}: ${err}`);
	}
	return performance.now() - startMs;
}
