import { readFileSync } from "node:fs";
import { parsePrometheus } from "../parse-prometheus.fixture.ts";
import type { Server } from "../server.ts";

/** The page that lists the metrics. */
const page = readFileSync(new URL("../../../../docs/operating.md", import.meta.url), "utf8");

/** The metrics of a server with a prefix: names without it, each with its values by their labels. */
export async function metricsWith(
	prefix: string,
	{ address }: Pick<Server, "address">,
): Promise<Record<string, Record<string, number>>> {
	const text = await (await fetch(`${address}/metrics`)).text();
	const lines = text.split("\n").filter((line) => line.replace(/^# \w+ /, "").startsWith(prefix));
	return Object.fromEntries(
		parsePrometheus(`${lines.join("\n")}\n`).map(({ name, metrics }) => [
			name.slice(prefix.length),
			Object.fromEntries(
				metrics.map(({ labels, value }) => [Object.values(labels ?? {}).join(" "), Number(value)]),
			),
		]),
	);
}

/** The names with a prefix that the page lists, without it. */
export function documentedMetrics(prefix: string): readonly string[] {
	return [...page.matchAll(new RegExp(`(?<=\`${prefix})\\w+`, "g"))].map(([name]) => name).sort();
}
