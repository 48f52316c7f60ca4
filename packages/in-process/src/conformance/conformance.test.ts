import { describe, expect, it } from "vitest";
import type { Behavior } from "./behavior.fixture.ts";
import { behaviors } from "./behaviors.fixture.ts";
import { inProcess, overSockets, type Side, shufflingScheduler } from "./transports.fixture.ts";

const sides: readonly Side[] = [
	...(["createClient", "createInProcessClient"] as const).flatMap((clients) => [
		inProcess(`in-process, with ${clients}`, clients, () => undefined),
		...[1, 2, 3].map((seed) =>
			inProcess(`in-process, with ${clients}, shuffled by ${seed}`, clients, () =>
				shufflingScheduler(seed),
			),
		),
	]),
	...overSockets,
];

for (const side of sides) {
	for (const [about, table] of Object.entries(behaviors)) {
		const relevant = table.filter(({ clients = side.clients }) => clients === side.clients);
		// Over sockets deadlines pass in real time: as many as can be, at the same time.
		const concurrent = side.kind !== "in-process";
		const name = `the transport ${side.name}: ${about}`;
		describe.skipIf(relevant.length === 0)(name, { concurrent }, () => {
			for (const behavior of relevant) {
				it(behavior.does, async () => {
					const { connect, close } = side.open();
					try {
						expect(await behavior.play(connect)).toEqual(expectedOn(side, behavior));
					} finally {
						await close();
					}
				});
			}
		});
	}
}

it("is described in docs/behaviors.md", async () => {
	await expect(asMarkdown()).toMatchFileSnapshot("../../docs/behaviors.md");
});

function expectedOn(side: Side, { outcome, deviation }: Behavior): unknown {
	if (deviation === undefined || side.kind === "in-process") {
		return outcome;
	}
	return deviation.on === "every wire" || deviation.on === side.kind ? deviation.outcome : outcome;
}

function asMarkdown(): string {
	const all = Object.values(behaviors).flat();
	const lines = [
		"# What a caller can rely on",
		"",
		`The ${all.length} behaviors of the conformance suite (\`src/conformance\`), which runs against this`,
		"transport, also with its hops in shuffled order, with the library's clients and with those of",
		"`createInProcessClient`, and against connect-node over a socket, with gRPC and with Connect. The",
		"outcome must be the same on all. This file is written by the suite (`vitest --update`).",
		"",
		"Deviations of the wire, which the suite expects there and which this transport does not have:",
		"",
		...all.flatMap(({ does, deviation }) =>
			deviation ? [`- on ${deviation.on}: "${does}" does not hold: ${deviation.why}.`] : [],
		),
	];
	for (const [about, table] of Object.entries(behaviors)) {
		lines.push("", `## ${about}`, "", "The transport", "", ...table.map(asItem));
	}
	return `${lines.join("\n")}\n`;
}

function asItem({ does, clients }: Behavior): string {
	return clients === undefined ? `- ${does}` : `- with clients of \`${clients}\`: ${does}`;
}
