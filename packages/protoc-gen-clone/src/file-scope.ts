import type { DescFile, DescMessage } from "@bufbuild/protobuf";
import { wktPublicImportPaths } from "@bufbuild/protobuf/codegenv2";
import type { GeneratedFile, ImportSymbol } from "@bufbuild/protoplugin";
import type { HelperName } from "./helpers.ts";

/**
 * The names of one generated file.
 *
 * A cloner is a function of this file, exported for its own messages, or is imported from the
 * generated file of another proto. Well-known types come with the runtime library, which has no
 * cloners: each file that needs one has a local cloner, so that generated files depend on nothing
 * that is not generated, in whatever groups of files the plugin is run.
 */
export interface FileScope {
	/** A name that this file declares or takes from the globals; no import gets it. */
	readonly own: (name: string) => ImportSymbol;
	/** The cloner of a message. */
	cloner(message: DescMessage): ImportSymbol;
	/** A helper function, which the file then has to declare. */
	readonly helper: (name: HelperName) => ImportSymbol;
	/** Whether a helper was asked for. */
	needs(name: string): boolean;
	/** Whether the cloner of the message is exported. */
	exports(message: DescMessage): boolean;
	/** The next message that needs a local cloner, once each. */
	takeLocal(): DescMessage | undefined;
}

/** Creates the scope of the file generated for a proto file. */
export function createFileScope(output: GeneratedFile, file: DescFile): FileScope {
	const from = `./${file.name}_clone.js`;
	const locals = new Map<string, ImportSymbol>();
	const waiting: DescMessage[] = [];
	const helpers = new Set<string>();
	const own = (name: string) => output.import(name, from);
	const exports = (message: DescMessage) => message.file === file;

	function localCloner(message: DescMessage): ImportSymbol {
		let cloner = locals.get(message.typeName);
		if (cloner === undefined) {
			cloner = own(localName(message));
			locals.set(message.typeName, cloner);
			waiting.push(message);
		}
		return cloner;
	}

	return {
		own,
		exports,
		needs: (name) => helpers.has(name),
		cloner(message) {
			const shape = output.importShape(message);
			if (exports(message)) {
				return own(`clone${shape.name}`);
			}
			if (shape.from === wktPublicImportPaths[message.file.proto.name]) {
				return localCloner(message);
			}
			return output.import(`clone${shape.name}`, shape.from.replace(/_pb\.js$/, "_clone.js"));
		},
		helper(name) {
			helpers.add(name);
			return own(name);
		},
		takeLocal: () => waiting.shift(),
	};
}

/** `copyAny` for google.protobuf.Any: never `clone…`, as the exports are called. */
function localName(message: DescMessage): string {
	const words = message.typeName.replace(/^google\.protobuf\./, "").split(".");
	return `copy${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("")}`;
}
