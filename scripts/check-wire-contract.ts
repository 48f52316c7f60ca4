/**
 * Checks the wire contract: lint, no break against the committed baseline, and a line in
 * docs/design/wire-contract.md for the baseline as it is.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const baseline = "packages/proto/baseline.binpb";
const page = "docs/design/wire-contract.md";

execFileSync("buf", ["lint"], { stdio: "inherit" });
execFileSync("buf", ["breaking", "packages/proto/proto", "--against", baseline], {
	stdio: "inherit",
});

const digest = createHash("sha256").update(readFileSync(baseline)).digest("hex");
const lastLine = readFileSync(page, "utf8").trimEnd().split("\n").at(-1) ?? "";
if (!lastLine.includes(digest)) {
	console.error(
		`${baseline} was changed: add the reason and its SHA-256, ${digest}, to the end of ${page}`,
	);
	process.exit(1);
}
