/** The flags of `plinth dev`. */
export interface DevFlags {
	readonly module: string;
	readonly proto: string;
	readonly listen?: string;
	readonly dataDir?: string;
	/** Whether types are checked. */
	readonly check: boolean;
	/** Whether code is generated. */
	readonly generate: boolean;
}

/** Where `plinth dev` runs. Paths of the flags are relative to its folder. */
export interface DevContext {
	/** The folder of the project, absolute. */
	readonly folder: string;
	readonly environment: Readonly<Record<string, string | undefined>>;
	/** Further flags of `plinth-server`. */
	readonly serverFlags: readonly string[];
}

/** `plinth dev` can't start. The message says what to do. */
export class DevError extends Error {
	override readonly name = "DevError";
}
