import { readFileSync } from "node:fs";
import type { DescFile } from "@bufbuild/protobuf";
import { createEcmaScriptPlugin, type Plugin, type Schema } from "@bufbuild/protoplugin";
import { printCloner } from "./cloner.ts";
import { printCloningClient } from "./cloning-client.ts";
import { createFileScope } from "./file-scope.ts";
import { printHelpers } from "./helpers.ts";

/**
 * The plugin. For each proto file `x.proto` with messages or services it generates `x_clone.ts`,
 * next to the `x_pb.ts` of protoc-gen-es:
 *
 * - `cloneFoo(message: Foo): Foo` for each message,
 * - `createFooCloningClient(client: Client<typeof Foo>): Client<typeof Foo>` for each service.
 *
 * It takes the options that all plugins of the framework take, as `target`, `import_extension` and
 * `rewrite_imports`. Another option is an error.
 */
export const protocGenClone: Plugin = createEcmaScriptPlugin({
	name: "protoc-gen-clone",
	version: `v${packageVersion()}`,
	generateTs: (schema) => {
		for (const file of schema.files) {
			generateFile(schema, file);
		}
	},
});

function generateFile(schema: Schema, file: DescFile): void {
	const messages = [...schema.typesInFile(file)].filter((type) => type.kind === "message");
	if (messages.length === 0 && file.services.length === 0) {
		return;
	}
	const output = schema.generateFile(`${file.name}_clone.ts`);
	output.preamble(file);
	const scope = createFileScope(output, file);
	for (const message of messages) {
		printCloner(output, scope, message);
	}
	for (const service of file.services) {
		printCloningClient(output, scope, service);
	}
	for (let next = scope.takeLocal(); next !== undefined; next = scope.takeLocal()) {
		printCloner(output, scope, next);
	}
	printHelpers(output, scope);
}

function packageVersion(): string {
	const manifest: unknown = JSON.parse(
		readFileSync(new URL("../package.json", import.meta.url), "utf8"),
	);
	if (typeof manifest === "object" && manifest !== null && "version" in manifest) {
		return String(manifest.version);
	}
	throw new Error("the package.json of protoc-gen-clone has no version");
}
