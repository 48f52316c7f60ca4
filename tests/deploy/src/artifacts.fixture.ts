import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DockerfileParser } from "dockerfile-ast";
import { parseAllDocuments } from "yaml";

const root = join(import.meta.dirname, "../../..");

/** The images: that of the server, and that of a project. */
export const dockerfiles = [
	"deploy/image/Dockerfile",
	"packages/scaffold/template/Dockerfile",
] as const;
export const unit = "deploy/systemd/plinth-server.service";
export const manifests = globSync("deploy/kubernetes/*.yaml", { cwd: root }).sort();

export function textOf(file: string): string {
	return readFileSync(join(root, file), "utf8");
}

/** The variables that the server reads, from the flags in its help. */
export function variablesOfServer(): ReadonlySet<string> {
	const main = join(root, "apps/server/src/main.ts");
	const help = execFileSync(process.execPath, [main, "--help"], { encoding: "utf8" });
	const flags = [...help.matchAll(/^ {2}--([a-z0-9-]+)/gm)].map(([, flag = ""]) => flag);
	// Flags that may be repeated are lists elsewhere.
	return new Set(
		flags
			.map((flag) => `PLINTH_${flag.toUpperCase().replaceAll("-", "_")}`)
			.concat("PLINTH_MODULES"),
	);
}

/** The resources of a manifest. */
export function resourcesOf(file: string): readonly unknown[] {
	return parseAllDocuments(textOf(file)).map((document) => {
		if (document.errors[0] !== undefined) {
			throw document.errors[0];
		}
		return document.toJS();
	});
}

/** The instructions of the last stage, each with the text of its arguments. */
export function lastStageOf(file: string) {
	const instructions = DockerfileParser.parse(textOf(file)).getInstructions();
	const start = instructions.findLastIndex((each) => each.getKeyword() === "FROM");
	return instructions.slice(start).map((each) => ({
		keyword: each.getKeyword(),
		text: each.getArgumentsContent() ?? "",
	}));
}
