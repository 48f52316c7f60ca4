/**
 * Writes what `@plinth/plinth` repeats of `@plinth/proto`, so that an application needs one dependency: its protos, with
 * options for other languages, and a file for each of its generated ones that exports all of it. With --check, fails if
 * they are stale.
 *
 *     node scripts/plinth-protos.ts [--check]
 */
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { check: { type: "boolean", default: false } } });

const from = "packages/proto";
const to = "packages/plinth";

/** The content of each file, by its path in the package. */
const files = new Map<string, string>();
for (const path of globSync("proto/plinth/**/*.proto", { cwd: from })) {
	files.set(path, withLanguages(readFileSync(join(from, path), "utf8")));
}
for (const path of globSync("src/gen/**/*.ts", { cwd: from })) {
	const entry = path.replace(/^src\//, "").replace(/\.ts$/, ".js");
	files.set(path, `export * from "@plinth/proto/${entry}";\n`);
}
files.set(
	"src/gen/buf/validate/validate_pb.ts",
	'export * from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";\n',
);

const committed = globSync(["proto/plinth/**/*.proto", "src/gen/**/*.ts"], { cwd: to });
const stale = [
	...committed.filter((path) => !files.has(path)),
	...[...files.keys()].filter((path) => {
		const file = join(to, path);
		return !existsSync(file) || readFileSync(file, "utf8") !== files.get(path);
	}),
];
if (values.check) {
	for (const path of stale) {
		console.error(`${join(to, path)} is stale: run node scripts/plinth-protos.ts`);
		process.exitCode = 1;
	}
} else {
	for (const path of stale) {
		const content = files.get(path);
		if (content === undefined) {
			rmSync(join(to, path));
		} else {
			mkdirSync(dirname(join(to, path)), { recursive: true });
			writeFileSync(join(to, path), content);
		}
	}
}

/**
 * A proto with a package for the code of each language that needs one. Only published protos have them: the options
 * are part of descriptors, and those that servers exchange stay as they are.
 */
function withLanguages(proto: string): string {
	return proto.replace(/^package (?<name>[\w.]+);\n/m, (line: string, name: string) => {
		const parts = name.split(".");
		const options: readonly (readonly [string, string])[] = [
			[
				"csharp_namespace",
				parts.map((part) => part.charAt(0).toUpperCase() + part.slice(1)).join("."),
			],
			["go_package", `plinth.dev/gen/${parts.join("/")};${parts.slice(-2).join("")}`],
			["java_multiple_files", "true"],
			["java_package", `dev.${name}`],
		];
		const lines = options.map(([option, value]) =>
			value === "true" ? `option ${option} = true;` : `option ${option} = "${value}";`,
		);
		return `${line}\n${lines.join("\n")}\n`;
	});
}
