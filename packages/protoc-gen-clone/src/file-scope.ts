import type { DescFile, DescMessage } from "@bufbuild/protobuf";
import { wktPublicImportPaths } from "@bufbuild/protobuf/codegenv2";
import type { GeneratedFile, ImportSymbol, Printable, Target } from "@bufbuild/protoplugin";

/**
 * What a generated file declares where its cloners or clients need it. Cloners are called `clone…`
 * and functions that make clients `create…`, so that no proto can claim the name of a helper.
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
 * One generated file, and the names in it.
 *
 * Cloners of the file's own messages are exported. Those of messages of other proto files are
 * imported from the files generated for these. Well-known types come with the runtime library,
 * which has no cloners: each file that needs one declares it for itself. So a generated file depends
 * on nothing but generated files and the runtime, however many runs of the plugin made them.
 */
export interface FileScope {
	readonly output: GeneratedFile;
	/** A name that the file declares, or takes from the globals. No import gets it. */
	readonly own: (name: string) => ImportSymbol;
	/** A helper, which the file then declares. */
	readonly helper: (name: HelperName) => ImportSymbol;
	/** A part of the code that TypeScript has and JavaScript has not. */
	readonly type: (...parts: Printable[]) => Printable;
	/** The cloner of a message. */
	readonly cloner: (message: DescMessage) => ImportSymbol;
	/** Whether the message is of this file, and its cloner exported. */
	readonly exports: (message: DescMessage) => boolean;
	/** The helpers asked for so far. */
	readonly helpers: ReadonlySet<HelperName>;
	/** The messages whose cloners the file declares for itself. Grows while they are printed. */
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

/** `copyAny` for google.protobuf.Any: not `clone…`, which a message of the file may claim. */
function localName(message: DescMessage): string {
	const words = message.typeName.replace(/^google\.protobuf\./, "").split(".");
	return `copy${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("")}`;
}
