/** The package managers that a new project can be set up for. */
export const packageManagers = ["npm", "pnpm"] as const;

export type PackageManager = (typeof packageManagers)[number];

/** What the files of the template, which are written for npm, say for another package manager. */
export const replacements: Readonly<Record<PackageManager, Readonly<Record<string, string>>>> = {
	npm: {},
	pnpm: {
		"npm install": "pnpm install",
		"npm run ": "pnpm run ",
		"npm start": "pnpm start",
		"npm test": "pnpm test",
		"npx ": "pnpm exec ",
		'"runtimeExecutable": "npm"': '"runtimeExecutable": "pnpm"',
		// In the Dockerfile.
		"package-lock.json": "pnpm-lock.yaml pnpm-workspace.yaml",
		"npm ci": "npm install --global pnpm@12 && pnpm install --frozen-lockfile",
		"npm prune --omit=dev": "pnpm prune --prod",
	},
};
