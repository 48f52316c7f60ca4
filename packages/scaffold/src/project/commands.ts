/** The commands of a project, in the words of its package manager. */
export interface Commands {
	/** Runs a script: followed by its name. */
	readonly run: string;
	readonly test: string;
	/** Runs a program of a dependency: followed by its name. */
	readonly exec: string;
}

export const npmCommands: Commands = { run: "npm run", test: "npm test", exec: "npx" };

export const pnpmCommands: Commands = { run: "pnpm run", test: "pnpm test", exec: "pnpm exec" };
