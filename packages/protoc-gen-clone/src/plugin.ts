import { readFileSync } from "node:fs";
import {
	createEcmaScriptPlugin,
	type Plugin,
	type Schema,
	type Target,
} from "@bufbuild/protoplugin";
import { declareCloner, printCloner } from "./cloner.ts";
import { declareCloningClient, printCloningClient } from "./cloning-client.ts";
import { createFileScope } from "./file-scope.ts";
import { printHelpers } from "./helpers.ts";

/**
 * The plugin. For each proto file with messages or services, `x.proto`, it generates `x_clone.ts`
 * (or `.js`, `.d.ts`) next to the `x_pb.ts` of protoc-gen-es:
 *
 * - `cloneFoo(message: Foo): Foo` for each message,
 * - `createFooCloningClient(client: Client<typeof Foo>): Client<typeof Foo>` for each service.
 *
 * It accepts the options of all plugins of the framework, such as `target`, `import_extension` and
 * `rewrite_imports`, and needs the same ones as protoc-gen-es. Other options are errors.
 */
export const protocGenClone: Plugin = createEcmaScriptPlugin({
	name: "protoc-gen-clone",
	version: `v${packageVersion()}`,
	generateTs: generate,
	generateJs: generate,
	generateDts: generate,
});

const EXTENSIONS: Readonly<Record<Target, string>> = { ts: "ts", js: "js", dts: "d.ts" };

function generate(schema: Schema, target: Target): void {
	for (const file of schema.files) {
		const messages = [...schema.typesInFile(file)].filter((type) => type.kind === "message");
		if (messages.length === 0 && file.services.length === 0) {
			continue;
		}
		const output = schema.generateFile(`${file.name}_clone.${EXTENSIONS[target]}`);
		output.preamble(file);
		const scope = createFileScope(output, file, target);
		if (target === "dts") {
			for (const message of messages) declareCloner(scope, message);
			for (const service of file.services) declareCloningClient(scope, service);
		} else {
			for (const message of messages) printCloner(scope, message);
			for (const service of file.services) printCloningClient(scope, service);
			for (const message of scope.localCloners) printCloner(scope, message);
			printHelpers(scope);
		}
	}
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
