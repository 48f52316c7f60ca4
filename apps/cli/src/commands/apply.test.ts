import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { decode, idOf, resourceOf } from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FilmSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film, HallV2 } from "../cinema.fixture.ts";
import { type CinemaServer, startCinema } from "../cinema-server.fixture.ts";
import { runPlinth } from "../run-plinth.fixture.ts";

let server: CinemaServer;
/** Runs once, before the next write that comes over the network. */
let beforeWrite: (() => Promise<void>) | undefined;

beforeEach(async () => {
	server = await startCinema({
		beforeWrite: async () => {
			const act = beforeWrite;
			beforeWrite = undefined;
			await act?.();
		},
	});
});
afterEach(() => server[Symbol.asyncDispose]());

const apply = (stdin: string, ...flags: readonly string[]) =>
	runPlinth(["apply", "-f", "-", "--server", server.address, ...flags], { stdin });

const get = async (name: string) =>
	(await runPlinth(["get", "film", name, "-o", "yaml", "--server", server.address])).out;

async function stored(name: string) {
	const { resource } = await server.client.read({ id: idOf(Film, name) });
	if (resource === undefined) {
		throw new Error("no response");
	}
	return decode(Film, resource);
}

const alien = "type: Film\nname: alien\ndata:\n  title: Alien\n";

describe("diff", () => {
	const diff = (stdin: string) =>
		runPlinth(["diff", "-f", "-", "--server", server.address], { stdin });

	it("prints what apply would change, stores nothing, and says by its exit code whether there is anything", async () => {
		expect(await diff(alien)).toMatchObject({
			code: 8,
			out: expect.stringMatching(/^\+.*\n(.*\n)*cinema\.v1\.Film\/alien would be created\n$/),
		});
		await apply(alien);
		expect(await diff(alien)).toEqual({ code: 0, out: "", err: "" });
		const other = await diff(
			`${alien.replace("Alien", "Aliens")}---\n${alien.replace("alien", "b")}`,
		);
		expect(other.code).toBe(8);
		expect(other.out).toContain("-  title: Alien\n+  title: Aliens\n");
		expect(other.out).toContain("cinema.v1.Film/alien would be updated\n");
		expect((await stored("alien")).data.title).toBe("Alien");
		expect(await diff("type: Film\nname: x\n")).toMatchObject({ code: 1, out: "" });
	});
});

describe("apply", () => {
	it("creates, updates, and leaves alone what is as it should be, the server's defaults included", async () => {
		expect(await apply(alien)).toEqual({ code: 0, out: "cinema.v1.Film/alien created\n", err: "" });
		const { resource, data } = await stored("alien");
		expect(data.rating).toBe(5);
		expect((await apply(alien)).out).toBe("cinema.v1.Film/alien unchanged\n");
		expect((await stored("alien")).resource.version).toBe(resource.version);
		expect((await apply(alien.replace("Alien", "Alien!"))).out).toBe(
			"cinema.v1.Film/alien updated\n",
		);
		expect((await stored("alien")).data.title).toBe("Alien!");
	});

	it("leaves what a document says nothing of as it is stored", async () => {
		await apply(`${alien}metadata: {team: a, floor: b}\n`);
		expect((await apply("type: Film\nname: alien\nmetadata: {team: c}\n")).out).toContain(
			"updated",
		);
		const { resource, data } = await stored("alien");
		expect(data.title).toBe("Alien");
		expect(resource.metadata).toEqual({ team: "c" });
		await apply(alien);
		expect((await stored("alien")).resource.metadata).toEqual({ team: "c" });
	});

	it("takes back what get prints", async () => {
		await apply(`${alien}metadata: {team: a}\n`);
		expect((await apply(await get("alien"))).out).toBe("cinema.v1.Film/alien unchanged\n");
		const asJson = await runPlinth(["get", "film", "-o", "json", "--server", server.address]);
		expect((await apply(asJson.out)).out).toBe("cinema.v1.Film/alien unchanged\n");
	});

	it("reads again where something else was written meanwhile, and loses nothing of it", async () => {
		await apply(alien);
		beforeWrite = async () => {
			const { resource } = await stored("alien");
			await server.client.write({ resource: { ...resource, metadata: { other: "kept" } } });
		};
		expect((await apply(alien.replace("Alien", "Aliens"))).out).toContain("updated");
		const { resource, data } = await stored("alien");
		expect(data.title).toBe("Aliens");
		expect(resource.metadata).toEqual({ other: "kept" });
	});

	it("refuses a document made from content that is gone by now, with exit code 4", async () => {
		await apply(alien);
		const old = await get("alien");
		await apply(alien.replace("Alien", "Aliens"));
		const { code, err } = await apply(old);
		expect(code).toBe(4);
		const generationOf = (document: string) => /^generation: (\w+)$/m.exec(document)?.[1];
		const now = generationOf(await get("alien"));
		expect(err).toContain(
			`standard input:1:1 (document 1): cinema.v1.Film default/default/alien: it has changed since the document was read: its generation is ${now}, that of the document ${generationOf(old)}. Get it again`,
		);
		await server.client.delete({ id: idOf(Film, "alien") });
		const gone = await apply(old);
		expect(gone.code).toBe(4);
		expect(gone.err).toContain("no longer exists: remove uid and generation from the document");
		await apply(alien);
		const uid = (await stored("alien")).resource.id?.uid;
		expect((await apply(old)).err).toBe(
			`standard input:1:1 (document 1): cinema.v1.Film default/default/alien: the resource from which the document was read no longer exists. Another alien, with uid ${uid}, exists now: removing uid and generation from the document overwrites it\n`,
		);
	});

	it("changes nothing with --dry-run=server, and is refused as the write would be", async () => {
		expect(await apply(alien, "--dry-run=server")).toMatchObject({
			code: 0,
			out: "cinema.v1.Film/alien created (server dry run)\n",
		});
		await expect(stored("alien")).rejects.toThrow("not found");
		await apply(alien);
		const changed = await apply(alien.replace("Alien", "Aliens"), "--dry-run=server", "--diff");
		expect(changed.out).toContain("-  title: Alien\n+  title: Aliens\n");
		expect(changed.out).toContain("updated (server dry run)");
		expect((await stored("alien")).data.title).toBe("Alien");
		expect(await apply("type: Film\nname: x\n", "--dry-run=server")).toMatchObject({ code: 1 });
	});

	it("prints what changes with --diff", async () => {
		await apply(alien);
		expect((await apply(`${alien}  tags: [space]\n`, "--diff")).out).toBe(
			` namespace: default
 data:
   title: Alien
+  tags:
+    - space
   rating: 5
cinema.v1.Film/alien updated
`,
		);
		expect((await apply(`${alien}  tags: [space]\n`, "--diff")).out).toBe(
			"cinema.v1.Film/alien unchanged\n",
		);
	});

	it("changes nothing at all where any document of any file is wrong", async () => {
		const { code, out, err } = await apply(`${alien}---\ntype: Film\nname: b\ndata: {titel: x}\n`);
		expect({ code, out }).toEqual({ code: 2, out: "" });
		expect(err).toBe(
			"plinth: standard input:8:8 (document 2): data.titel: Film has no such field; did you mean title?\nnothing was changed\n",
		);
		await expect(stored("alien")).rejects.toThrow("not found");
	});

	it("goes on after a document that the server refuses, and says which field of which it was", async () => {
		const { code, out, err } = await apply(
			`type: Film\nname: bad\ndata:\n  title: x\n  prizes:\n    oscar: 12\n---\n${alien}---\ntype: Film\nname: lost\nnamespace: none\ndata: {title: x}\n`,
		);
		expect(code).toBe(1);
		expect(out).toBe("cinema.v1.Film/alien created\n");
		expect(
			err,
		).toBe(`standard input:6:12 (document 1): resource.data.prizes["oscar"] invalid: nobody has that many
standard input:13:1 (document 3): cinema.v1.Film default/none/lost: namespace not found: none
`);
	});

	it("reads files and folders in their order", async () => {
		const folder = mkdtempSync(join(tmpdir(), "plinth-apply-"));
		try {
			writeFileSync(
				join(folder, "b.json"),
				'{"type": "Film", "name": "b", "data": {"title": "B"}}',
			);
			writeFileSync(join(folder, "a.yaml"), alien);
			writeFileSync(join(folder, "notes.txt"), "not this one");
			const { out } = await runPlinth(["apply", "-f", folder, "--server", server.address]);
			expect(out).toBe("cinema.v1.Film/alien created\ncinema.v1.Film/b created\n");
		} finally {
			rmSync(folder, { recursive: true });
		}
		const { code, err } = await runPlinth([
			...["apply", "-f", "/nowhere/x.yaml", "--server", server.address],
		]);
		expect({ code, err }).toEqual({
			code: 2,
			err: "plinth: can't read /nowhere/x.yaml: no such file\n",
		});
	});

	it("refuses input without documents", async () => {
		expect(await apply("# nothing\n")).toMatchObject({
			code: 2,
			err: "plinth: no documents in standard input\n",
		});
	});

	it("keeps the finalizers of a resource whose metadata it replaces", async () => {
		await server.client.write({
			resource: resourceOf(Film, {
				id: idOf(Film, "alien"),
				data: create(FilmSchema, { title: "Alien" }),
				metadata: { finalizers: "archive" },
			}),
		});
		await apply(`${alien}metadata: {team: a}\n`);
		expect((await stored("alien")).resource.metadata).toEqual({ finalizers: "archive", team: "a" });
	});

	it("replaces what is stored under another group version of the type", async () => {
		await using halls = await startCinema({ types: [HallV2] });
		const run = (stdin: string, ...flags: readonly string[]) =>
			runPlinth(["apply", "-f", "-", "--server", halls.address, ...flags], { stdin });
		await run("type: cinema.v1.Hall\nname: one\nmetadata: {team: a}\ndata: {seats: 80}\n");
		const newer = "type: cinema.v2.Hall\nname: one\ndata: {seats: 80, floor: second}\n";
		expect((await run(newer, "--diff")).out).toBe(`-type: cinema.v1.Hall
+type: cinema.v2.Hall
 name: one
 partition: default
 metadata:
   team: a
 data:
   seats: 80
+  floor: second
cinema.v2.Hall/one updated
`);
		expect((await run(newer)).out).toBe("cinema.v2.Hall/one unchanged\n");
		expect((await run("type: Hall\nname: one\n")).err).toContain(
			"Hall is ambiguous, use the full name: cinema.v1.Hall, cinema.v2.Hall",
		);
	});
});
