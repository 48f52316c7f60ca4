/** The command that starts the product as users do: tokens, limits, metrics and audit, with memory storage. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { tokenHash } from "@plinth/resource-service";

/** Accepted by the product; the other contenders read no token. */
export const token = "bench-token-that-is-long-enough";

/**
 * @param app - the folder of the server package, of this checkout or another one.
 * @param folder - for the access file.
 * @param module - with the type of the resources; a file of the server package.
 */
export function plinthServer(
	app: string,
	folder: string,
	module = "testdata/modules/module.ts",
): readonly string[] {
	const accessFile = join(folder, "access.yaml");
	writeFileSync(
		accessFile,
		`policies: { all: [{ operations: ["*"] }] }\ntokens:\n  - { subject: bench, sha256: ${tokenHash(token)}, policies: [all] }\n`,
	);
	return [
		...[process.execPath, join(app, "src/main.ts")],
		...["--listen", "127.0.0.1:0", "--storage", "memory"],
		...["--module", join(app, module), "--access-file", accessFile],
		// The limits count, but are never reached: a bench is one subject with more calls than any user.
		...["--limits-calls-per-second", "1000000", "--limits-call-burst", "1000000"],
		...["--limits-streams-in-flight", "100000", "--limits-streams-per-subject", "100000"],
		// A pause of an open loop is a part of its latencies, rather than a reason to refuse calls.
		...["--limits-calls-in-flight", "100000"],
	];
}
