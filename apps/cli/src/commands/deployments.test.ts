import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import type { ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	SettleRequest_Action as Action,
	DeploymentService,
	SettleResponse_Outcome as Outcome,
	type SettleRequest,
} from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import { idOf } from "@plinth/resource";
import { describe, expect, it, onTestFinished } from "vitest";
import { Film, Screening } from "../cinema.fixture.ts";
import { startCinema } from "../cinema-server.fixture.ts";
import { startRestoredCinemas, there, writeFilm } from "../restored-cinemas.fixture.ts";
import { runPlinth } from "../run-plinth.fixture.ts";

const screenings = {
	blocks: { film: there(Film, "alien") },
	cascades: { series: there(Screening, "first") },
	unsets: { after: there(Screening, "first") },
	depends: { film: there(Film, "kept") },
};

/** Starts the cinemas, and waits until all that was lost is reported. */
async function start(lacking = 3) {
	const cinemas = await startRestoredCinemas(screenings);
	await expect
		.poll(async () => (await cinemas.run(["deployments"])).out, { timeout: 300_000 })
		.toMatch(new RegExp(`^cinema-r1-2 .* 4 +${lacking}$`, "m"));
	return cinemas;
}

const holder = (name: string) => `cinema.Screening default/default/${name} in r2`;

describe("deployments", () => {
	it("lists the deployments, and the references that have no target", async () => {
		const { run } = await start();
		expect((await run(["deployments"])).out).toMatch(
			/^NAME +SERVICE +REGION +VERSION +STATE +REFERENCES +MISSING\ncinema-r1 +cinema +r1 +v1 +replaced +0 +0\ncinema-r1-2 +cinema +r1 +v1 +registered +4 +3\ncinema-r2 +cinema +r2 +v1 +of this server +0 +0\nmeta-r1 +meta +r1 +v1 +registered +0 +0\nSome references have no target: plinth deployments cinema-r1-2 lists them\n$/,
		);
		const { out, err, code } = await run(["deployments", "cinema-r1"]);
		expect(code).toBe(0);
		expect(err).toBe("plinth: cinema-r1 was replaced by cinema-r1-2 (cinema in r1)\n");
		expect(out).toMatch(/^4 references to cinema-r1-2 \(cinema in r1\), 3 without a target\n/);
		for (const line of [
			`${holder("blocks")} +film +cinema.Film default/default/alien in r1 +block +\\d+s`,
			`${holder("cascades")} +series +cinema.Screening default/default/first in r1 +cascade +\\d+s`,
			`${holder("unsets")} +after +cinema.Screening default/default/first in r1 +unset +\\d+s`,
			"Create the targets again, or see .*: plinth deployments settle cinema-r1-2 --dry-run=server",
		]) {
			expect(out).toMatch(new RegExp(`^${line}$`, "m"));
		}
		expect(JSON.parse((await run(["deployments", "-o", "json"])).out)).toMatchObject([
			{ name: "cinema-r1", successor_uid: expect.stringMatching(/./) },
			{ name: "cinema-r1-2", references: "4", missing: "3", is_registered: true },
			{ name: "cinema-r2", is_self: true },
			{ name: "meta-r1" },
		]);
		expect((await run(["deployments", "cinema/r2", "-o", "json"])).out).toBe("[]\n");
		const { out: names } = await run(["deployments", "cinema-r1-2", "-o", "name"]);
		expect(names.trim().split("\n").toSorted()).toEqual(
			["blocks", "cascades", "unsets"].map(holder),
		);
		expect(await run(["deployments", "cinema-r3"])).toMatchObject({
			code: 3,
			err: "plinth: the server knows no deployment cinema-r3; did you mean cinema-r1? (plinth deployments lists them)\n",
		});
	});

	it("settle does what the rules say, after it has shown that and asked", async () => {
		const { run, second } = await start();
		const settle = ["deployments", "settle", "cinema-r1-2"];
		expect(await run(settle)).toMatchObject({
			code: 2,
			err: expect.stringContaining("--dry-run=server, then pass --yes"),
		});
		const asked: string[] = [];
		const replying = (answer: string) => ({
			isInteractive: true,
			ask: async (question: string) => {
				asked.push(question);
				return answer;
			},
		});
		const plan = [
			`${holder("blocks")} .* left`,
			"left: 1 reference with the rule block: choose --unset, --cascade or --keep",
			`${holder("cascades")} .* deleted`,
			`${holder("unsets")} .* unset`,
		];
		for (const [args, options, end] of [
			[[...settle, "--dry-run=server"], {}, ""],
			[settle, replying("n"), "nothing was changed\n"],
			[settle, replying(""), "nothing was changed\n"],
		] as const) {
			const { code, out } = await run(args, options);
			expect(code).toBe(0);
			for (const line of plan) {
				expect(out).toMatch(new RegExp(`^${line}$`, "m"));
			}
			expect(out.endsWith(end)).toBe(true);
		}
		expect(await second.client.read({ id: idOf(Screening, "cascades") })).toBeDefined();
		expect(asked).toEqual(Array(2).fill("Settle 2 references? It can't be undone. [y/N] "));
		expect((await run(settle, replying("y"))).out).toContain("settled: 1 unset, 1 cascaded\n");
		const { resource } = await second.client.read({ id: idOf(Screening, "unsets") });
		expect(resource?.data?.value).toEqual(new Uint8Array());
		await expect(second.client.read({ id: idOf(Screening, "cascades") })).rejects.toThrow();
		expect(await run([...settle, "--yes"])).toMatchObject({
			code: 4,
			err: "plinth: none of these references can be settled so\n",
		});
	});

	it("settle keeps what it is told to keep, and takes only what is named", async () => {
		const { run, first } = await start();
		const settle = ["deployments", "settle", "cinema-r1", "--yes"];
		expect(await run([...settle, "--keep", "--target", "aline"])).toMatchObject({
			code: 3,
			err: expect.stringContaining("3 references without a target in cinema-r1-2 (cinema in r1)"),
		});
		expect(await run([...settle, "--keep", "--type", "nothing"])).toMatchObject({ code: 2 });
		// Names are checked before it is found that nobody can be asked.
		expect(await run(["deployments", "settle", "nope"])).toMatchObject({ code: 3 });
		expect((await run(["deployments", "settle", "cinema-r1", "--type", "nope"])).err).toContain(
			"unknown type nope",
		);
		expect(await run([...settle, "--keep", "--unset"])).toMatchObject({
			code: 2,
			err: expect.stringContaining("flag '--unset' can't be used with flag '--keep'"),
		});
		expect((await run([...settle, "--keep", "--target", "alien"])).out).toContain(
			"settled: 1 kept\n",
		);
		expect((await run(["status", "screening", "blocks"])).out).toContain(
			"ReferencesResolved  True",
		);
		expect((await run(["deployments", "cinema-r1-2"])).out).toMatch(
			new RegExp(`^${holder("blocks")} .* kept$`, "m"),
		);
		expect(
			(await run([...settle, "--type", "screening", "--target", "default/first"])).out,
		).toContain("settled: 1 unset, 1 cascaded\n");
		expect(await run([...settle, "--unset"])).toMatchObject({
			code: 0,
			out: "nothing to settle: 1 reference without a target in cinema-r1-2 (cinema in r1) that operators have decided to keep (--kept includes them)\n",
		});
		await writeFilm(first, "alien");
		expect((await run([...settle, "--unset", "--kept"])).out).toContain(
			"1 reference left: they have a target again, or were changed\n",
		);
		expect(await run(settle)).toMatchObject({
			code: 0,
			out: expect.stringMatching(
				/^no reference of this server's deployment lacks a target in cinema-r1-2/,
			),
		});
		expect(await run(["deployments", "settle", "cinema-r2", "--yes"])).toMatchObject({
			code: 0,
			out: expect.stringContaining("use --server with a server of each"),
		});
	});
});

describe("a server without peers", () => {
	it("is named by its uid", async () => {
		const alone = { uid: "01KAYZ0V7M0000000000000000", isSelf: true, isRegistered: true };
		const server = await serve({
			listDeployments: () => ({ deployments: [alone] }),
			listMissing: () => ({}),
		});
		const run = async (...args: readonly string[]) =>
			runPlinth(["deployments", ...args, "--server", server]);
		expect((await run("-o", "name")).out).toBe(`${alone.uid}\n`);
		expect((await run(alone.uid)).out).toBe(`0 references to ${alone.uid}, 0 without a target\n`);
		expect((await run("/")).err).toContain("the server knows no deployment /");
	});
});

/** A server with nothing but this service. */
async function serve(service: Partial<ServiceImpl<typeof DeploymentService>>): Promise<string> {
	const server = createServer(
		connectNodeAdapter({ routes: (router) => router.service(DeploymentService, service) }),
	);
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	onTestFinished(() => void server.close());
	return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server with 2,500 references to a deployment that have no target, in pages of 1,000. */
async function serveMany(settled: (request: SettleRequest) => Outcome) {
	const calls: SettleRequest[] = [];
	const address = await serve({
		listDeployments: () => ({
			deployments: [
				{ uid: "u1", name: "twin", service: "a", region: "r", isRegistered: true },
				{ uid: "u2", name: "twin", service: "b", region: "r", isRegistered: true },
				{ service: "gone", region: "r", references: 1n, missing: 1n },
			],
		}),
		listMissing: ({ pageToken }) => {
			const from = Number(pageToken || 0);
			const references = Array.from({ length: Math.min(1_000, 2_500 - from) }, (_, at) => ({
				holder: { group: "cinema", kind: "Screening", name: `s${from + at}` },
				...{ holderUid: `${from + at}`, path: "after", rule: OnDelete.UNSET, targetUid: "lost" },
				target: { group: "cinema", kind: "Film", name: "alien" },
			}));
			const next = from + 1_000;
			return {
				references,
				hidden: 3n,
				total: 2_509n,
				nextPageToken: next < 2_500 ? `${next}` : "",
			};
		},
		settle: (request) => {
			if (!request.dryRun) {
				calls.push(request);
			}
			const outcome = request.dryRun ? Outcome.SETTLED : settled(request);
			return { results: request.references.map(() => ({ outcome, problem: "it is locked" })) };
		},
	});
	return { address, calls };
}

describe("deployments settle", () => {
	it("settles many references in small calls, each once", async () => {
		const { address, calls } = await serveMany(() => Outcome.SETTLED);
		const args = ["deployments", "settle", "u2", "--yes", "--server", address];
		const { code, out, err } = await runPlinth(args);
		expect({ code, err }).toEqual({
			code: 0,
			err: "plinth: 9 references to twin (b in r) are left out: you may not read their resources\n",
		});
		expect(out).toContain("and 1500 references more\nsettled: 2500 unset\n");
		const uids = calls.flatMap(({ references }) => references.map(({ holderUid }) => holderUid));
		expect(new Set(uids).size).toBe(2_500);
		expect(uids).toHaveLength(2_500);
		expect(calls.every(({ references }) => references.length <= 50)).toBe(true);
		expect(calls[0]).toMatchObject({ deploymentUid: "u2", action: Action.UNSET });
		expect(calls[0]?.references[0]).toMatchObject({ holderUid: "0", targetUid: "lost" });
	});

	it("names what was refused, and says how far it came if a call fails", async () => {
		const refusing = await serveMany(() => Outcome.REFUSED);
		const args = ["deployments", "settle", "gone/r", "--yes", "--server"];
		const refused = await runPlinth([...args, refusing.address]);
		expect(refused.code).toBe(1);
		expect(refused.out).toMatch(/settled: none\n$/);
		expect(refused.err).toContain("plinth: cinema.Screening s7 after: it is locked\n");
		let left = 3;
		const failing = await serveMany(() => {
			left -= 1;
			if (left === 0) {
				throw new Error("it has stopped");
			}
			return Outcome.SETTLED;
		});
		const failed = await runPlinth([...args, failing.address]);
		expect(failed.code).toBe(1);
		expect(failed.err).toContain(
			"plinth: 100 of 2500 references were settled, and up to 50 more may have been: run the command again\n",
		);
		expect(failing.calls[0]).toMatchObject({ deploymentUid: "", service: "gone", region: "r" });
	});

	it("asks for a uid if a name is ambiguous", async () => {
		const { address } = await serveMany(() => Outcome.SETTLED);
		expect(await runPlinth(["deployments", "twin", "--server", address])).toMatchObject({
			code: 2,
			err: "plinth: twin is ambiguous: use a uid: u1 (twin), u2 (twin)\n",
		});
	});

	it("says that a server is too old, and what to do", async () => {
		await using server = await startCinema();
		const older = await serve({
			listDeployments: () => ({ deployments: [{ uid: "u", name: "it", service: "it" }] }),
		});
		for (const [address, ...args] of [
			[server.address, "deployments"],
			[older, "deployments", "it"],
			[older, "deployments", "settle", "it", "--yes"],
		] as const) {
			expect(await runPlinth([...args, "--server", address])).toMatchObject({
				code: 1,
				err: expect.stringContaining("update all servers of the deployment"),
			});
		}
	});
});
