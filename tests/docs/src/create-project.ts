/**
 * What `npm create plinth@latest <folder>` does, without a registry: creates the project, and links its dependencies to
 * the packages of this workspace. `tests/scaffold` does the same with published packages.
 */
import { mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createProject } from "@plinth/scaffold";
import { root } from "./page.ts";

/** Where the packages are that a project depends on. */
const packages: Readonly<Record<string, string>> = {
	"@plinth/plinth": "packages/plinth",
	"@bufbuild/protobuf": "packages/plinth/node_modules/@bufbuild/protobuf",
	"@bufbuild/buf": "node_modules/@bufbuild/buf",
	"@bufbuild/protoc-gen-es": "node_modules/@bufbuild/protoc-gen-es",
	"@types/node": "node_modules/@types/node",
	typescript: "node_modules/typescript",
};

/** What runs as the commands of these packages. */
const commands: Readonly<Record<string, string>> = {
	plinth: `node ${join(root, "packages/plinth/src/plinth.ts")}`,
	"plinth-server": `node ${join(root, "packages/plinth/src/plinth-server.ts")}`,
	buf: join(root, "node_modules/.bin/buf"),
	tsc: join(root, "node_modules/.bin/tsc"),
	"protoc-gen-es": join(root, "node_modules/.bin/protoc-gen-es"),
	"protoc-gen-es-comments": `node ${join(root, "packages/plinth/src/protoc-gen-es-comments.ts")}`,
};

const [folder = ""] = process.argv.slice(2);
await createProject({ folder });
const {
	dependencies,
	devDependencies,
}: Record<"dependencies" | "devDependencies", Record<string, string>> = JSON.parse(
	readFileSync(join(folder, "package.json"), "utf8"),
);
for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
	const link = join(folder, "node_modules", name);
	mkdirSync(dirname(link), { recursive: true });
	symlinkSync(realpathSync(join(root, packages[name] ?? `missing: ${name}`)), link);
}
mkdirSync(join(folder, "node_modules/.bin"));
for (const [name, command] of Object.entries(commands)) {
	const text = `#!/bin/sh\nexec ${command} "$@"\n`;
	writeFileSync(join(folder, "node_modules/.bin", name), text, { mode: 0o755 });
}
