import type { Block } from "./page.ts";

/** Code blocks that no test runs or checks, with the reason. */
export interface Exception {
	/** The page; any page if absent. */
	readonly page?: string;
	/** Matches a line of such a block. */
	readonly line: RegExp;
	readonly reason: string;
}

/** All of them. An entry without a block fails the tests. */
export const exceptions: readonly Exception[] = [
	{
		page: "README.md",
		line: /^npx -y pnpm@12 test$/,
		reason: "runs these tests, among others",
	},
	{
		page: "CONTRIBUTING.md",
		line: /^npx -y pnpm@12 exec turbo run check test --filter @plinth\/cache$/,
		reason: "runs the tests of packages, which this is one of",
	},
	{
		page: "CONTRIBUTING.md",
		line: /^npx -y pnpm@12 test src\/tree$/,
		reason: "runs tests, which needs a real checkout",
	},
	{
		page: "CONTRIBUTING.md",
		line: /^npx -y pnpm@12 changeset$/,
		reason: "asks questions",
	},
	{
		line: /\btest:deep\b/,
		reason: "runs for minutes; CI runs it by itself, for a shorter time",
	},
	{
		page: "docs/db-constraint-coverage.md",
		line: /^export NODE_V8_COVERAGE=/,
		reason: "runs for an hour; the tests of packages/db-constraint run the simulation",
	},
	{
		page: "docs/agents-simulation.md",
		line: /─▶/,
		reason: "a drawing; the simulation is composed as it shows",
	},
	{
		page: "docs/db-constraint-simulation.md",
		line: /^git ls-tree /,
		reason: "reads a commit, which the checkout of a page lacks",
	},
	{
		page: "docs/db-constraint-simulation.md",
		line: /^node src\/simulation\/main\.ts /,
		reason: "runs for minutes; the tests of packages/db-constraint run the simulation",
	},
	{
		page: "docs/design/architecture.md",
		line: /^examples\/\* +modules for the server$/,
		reason: "a drawing; scripts/check-layers.ts checks what it shows",
	},
	{
		page: "docs/design/controllers.md",
		line: /─▶/,
		reason: "a drawing; the tests of sharded controllers check what it shows",
	},
	{
		page: "docs/operating.md",
		line: /^SERVER {3}UP {2}CPU {2}DELAY/,
		reason: "of a cluster with a load; the tests of `plinth top` check what it shows",
	},
	{
		page: "docs/operating.md",
		line: /^plinth-server (?:agent|new-token \|)/,
		reason:
			"names servers of other machines; the tests of agents and deployments start such processes",
	},
	{
		page: "docs/design/agents.md",
		line: /──?▶|══▶|#version = /,
		reason: "a drawing; the tests of agents check what it shows",
	},
	{
		page: "docs/peering.md",
		line: /^plinth --context (west|east) |^PEERING +ROLE|^type: peering\.v1\./,
		reason: "of two clusters; the tests of `plinth peering` and of the server do the same steps",
	},
	{
		page: "docs/regional-copies.md",
		line: /^PEERING +ROLE|^type: tenancy\.v1\./,
		reason: "of several regions; the tests of regional copies write such policies",
	},
	{
		page: "examples/peering/README.md",
		line: /─▶/,
		reason: "a drawing; the lines of the page do what it shows",
	},
	{
		page: "docs/design/peering.md",
		line: /─▶/,
		reason: "a drawing; the tests of peerings check what it shows",
	},
	{
		page: "docs/design/references.md",
		line: /─▶/,
		reason: "drawings; the simulation and its mutants check the protocol that they show",
	},
	{
		page: "docs/design/wire.md",
		line: /^ *pnpm bench /,
		reason: "runs for minutes, and compares with another checkout",
	},
	{
		page: "docs/design/wire.md",
		line: /^NODE_ENV=production node --cpu-prof /,
		reason: "runs until it is stopped, and writes a profile for a person to read",
	},
	{
		page: "docs/server-load.md",
		line: /^pnpm bench /,
		reason: "runs for minutes, and compares with another checkout",
	},
	{
		page: "docs/security.md",
		line: /^ +callers +other deployments$/,
		reason: "a drawing",
	},
];

/** The exception for a block, if any. */
export function exceptionFor(path: string, block: Block): Exception | undefined {
	return exceptions.find(
		({ page = path, line }) =>
			page === path && block.text.split("\n").some((text) => line.test(text)),
	);
}
