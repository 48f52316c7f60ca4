import type { DescFile, DescMessage } from "@bufbuild/protobuf";
import { wktPublicImportPaths } from "@bufbuild/protobuf/codegenv2";
import type { GeneratedFile, ImportSymbol, Printable, Target } from "@bufbuild/protoplugin";

/**
 * Helpers that a generated file declares if its cloners or clients need them. Cloners are called `clone…` and
 * functions that create clients `create…`, so that no proto can collide with the name of a helper.
 */
export type HelperName =
	| "cloningClient"
	| "mapStream"
	| "emptyLike"
	| "copyUnknownFields"
	| "copyJsonObject"
	| "copyJsonValue"
	| "copyItems"
	| "copyEntries"
	| "copyBytes";

/**
 * A generated file and its names.
 *
 * Cloners of the file's own messages are exported. Cloners of messages of other proto files are imported
 * from the files generated for those. Well-known types come with the runtime library, which has no cloners:
 * each file that needs one declares it locally. So a generated file depends only on generated files and the
 * runtime, for any number of runs of the plugin.
 */
export interface FileScope {
	readonly output: GeneratedFile;
	/** A name that the file declares or that is global. No import uses it. */
	readonly own: (name: string) => ImportSymbol;
	/** A helper, which the file then declares. */
	readonly helper: (name: HelperName) => ImportSymbol;
	/** A part of the code that is only generated for TypeScript. */
	readonly type: (...parts: Printable[]) => Printable;
	/** The cloner of a message. */
	readonly cloner: (message: DescMessage) => ImportSymbol;
	/** Whether the message belongs to this file, so that its cloner is exported. */
	readonly exports: (message: DescMessage) => boolean;
	/** The helpers used so far. */
	readonly helpers: ReadonlySet<HelperName>;
	/** The messages whose cloners the file declares locally. Grows while they are printed. */
	readonly localCloners: ReadonlySet<DescMessage>;
}

/** Creates the scope of the file that is generated for a proto file. */
export function createFileScope(output: GeneratedFile, file: DescFile, target: Target): FileScope {
	const helpers = new Set<HelperName>();
	const localCloners = new Set<DescMessage>();
	const own = (name: string) => output.import(name, `./${file.name}_clone.js`);
	const exports = (message: DescMessage) => message.file === file;

	return {
		output,
		own,
		helper(name) {
			helpers.add(name);
			return own(name);
		},
		type: (...parts) => (target === "js" ? [] : parts),
		cloner(message) {
			const shape = output.importShape(message);
			if (exports(message)) {
				return own(`clone${shape.name}`);
			}
			if (shape.from === wktPublicImportPaths[message.file.proto.name]) {
				localCloners.add(message);
				return own(localName(message));
			}
			return output.import(`clone${shape.name}`, shape.from.replace(/_pb\.js$/, "_clone.js"));
		},
		exports,
		helpers,
		localCloners,
	};
}

/** `copyAny` for google.protobuf.Any: not `clone…`, which could collide with a message of the file. */
function localName(message: DescMessage): string {
	const words = message.typeName.replace(/^google\.protobuf\./, "").split(".");
	return `copy${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("")}`;
}
