import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { idOf, referenceTo, resourceOf, tenancyOf, typeOf } from "@plinth/resource";
import { createServer, defineModule } from "@plinth/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { FilmSchema, ScreeningSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film, Screening } from "../cinema.fixture.ts";
import { startCinema } from "../cinema-server.fixture.ts";
import { runPlinth } from "../run-plinth.fixture.ts";

/** A server with the film `alien` and the screening `first`, which shows it. */
async function start() {
	const server = createServer({
		storage: { kind: "memory" },
		listen: { host: "127.0.0.1", port: 0 },
		modules: [defineModule({ name: "cinema", types: [Film, Screening] })],
	});
	await server.start();
	onTestFinished(() => server.stop());
	const data = create(FilmSchema, { title: "Alien" });
	await server.client.write({ resource: resourceOf(Film, { id: idOf(Film, "alien"), data }) });
	const put = async (
		name: string,
		init: MessageInitShape<typeof ScreeningSchema>,
		finalizers = "",
		owner?: string,
	) => {
		const id = idOf(Screening, name);
		const resource = resourceOf(Screening, { id, data: create(ScreeningSchema, init) });
		const { resource: owning } =
			owner === undefined ? {} : await server.client.read({ id: idOf(Screening, owner) });
		await server.client.write({
			resource: {
				...resource,
				metadata: { finalizers },
				...(owning?.id && { owner: owning.id }),
			},
		});
	};
	await put("first", { film: referenceTo({ type: Film.type, name: "alien" }) });
	const run = (...args: readonly string[]) => runPlinth([...args, "--server", server.address]);
	return { server, put, run };
}

const to = (name: string) => referenceTo({ type: Screening.type, name });

describe("refs", () => {
	it("prints both directions, and what blocks a deletion", async () => {
		const { run } = await start();
		expect(await run("refs", "film", "alien")).toEqual({
			code: 0,
			out: `references:
  none
referenced by:
  RESOURCE                                FIELD  ON-DELETE  NOTE
  cinema.Screening default/default/first  film   block
deletion:
  would be refused: it is blocked by cinema.Screening default/default/first
  RESOURCE                                EFFECT  WAITS FOR
  cinema.Screening default/default/first  blocks
`,
			err: "",
		});
		const { out } = await run("refs", "screening", "first");
		expect(out).toBe(`references:
  FIELD  TARGET                             ON-DELETE  NOTE
  film   cinema.Film default/default/alien  block
referenced by:
  none
deletion:
  would be accepted
`);
	});

	it("foretells what goes, what is cleared, and what a deletion would wait for", async () => {
		const { put, run } = await start();
		await put("second", { series: to("first") });
		await put("third", { after: to("first") });
		expect((await run("refs", "screening", "first")).out).toContain(`deletion:
  would be accepted: 1 more deleted with it, references cleared in 1
  RESOURCE                                 EFFECT             WAITS FOR
  cinema.Screening default/default/second  deleted
  cinema.Screening default/default/third   reference cleared
`);
		await put("fourth", { needs: to("second") });
		expect((await run("refs", "screening", "first")).out).toContain(`deletion:
  would be accepted, and wait for cinema.Screening default/default/second
  RESOURCE                                 EFFECT                     WAITS FOR
  cinema.Screening default/default/second  stays while it is blocked`);
	});

	it("foretells that what is owned goes with its owner, and so it does", async () => {
		const { server, put, run } = await start();
		await put("second", { series: to("first") });
		await put("owned", {}, "", "second");
		await put("kept", { after: to("owned") });
		expect((await run("refs", "screening", "first")).out).toContain(`deletion:
  would be accepted: 2 more deleted with it, references cleared in 1
  RESOURCE                                 EFFECT             WAITS FOR
  cinema.Screening default/default/second  deleted
  cinema.Screening default/default/owned   deleted
  cinema.Screening default/default/kept    reference cleared
`);
		await run("delete", "screening", "first");
		await expect
			.poll(async () => {
				const found = await server.client.list({
					type: typeOf(Screening.type),
					tenancy: tenancyOf({ partition: "default", namespace: "default" }),
				});
				return found.resources.map(({ id }) => id?.name);
			})
			.toEqual(["kept"]);
	});

	it("says that a server is too old", async () => {
		await using server = await startCinema();
		await server.client.write({
			resource: resourceOf(Film, {
				id: idOf(Film, "alien"),
				data: create(FilmSchema, { title: "Alien" }),
			}),
		});
		const refused = await runPlinth(["refs", "film", "alien", "--server", server.address]);
		expect(refused.code).toBe(1);
		expect(refused.err).toContain("it is older than this command");
	});
});

describe("a deletion that waits", () => {
	it("is explained through all levels by delete and describe", async () => {
		const { put, run } = await start();
		await put("second", { series: to("first") });
		await put("fourth", { needs: to("second") });
		const blocked =
			"cinema.Screening default/default/second, which is blocked by cinema.Screening default/default/fourth";
		expect(await run("delete", "screening", "first")).toMatchObject({
			code: 0,
			out: `cinema.v1.Screening/first marked for deletion: waiting for ${blocked}\n`,
		});
		expect((await run("describe", "screening", "first")).out).toContain(
			`deletion waits for:\n  ${blocked}\n`,
		);
		expect((await run("refs", "screening", "first")).out).toContain(
			"deletion:\n  waits for cinema.Screening default/default/second\n",
		);
	});

	it("names the finalizers of what it waits for", async () => {
		const { put, run } = await start();
		await put("second", { series: to("first") }, "archive");
		expect((await run("delete", "screening", "first")).out).toContain(
			"waiting for cinema.Screening default/default/second, which waits for finalizer archive\n",
		);
	});
});
