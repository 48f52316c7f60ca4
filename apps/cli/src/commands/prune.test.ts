import { idOf } from "@plinth/resource";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { Film, Hall, HallV2 } from "../cinema.fixture.ts";
import { type CinemaOptions, type CinemaServer, startCinema } from "../cinema-server.fixture.ts";
import { type RunOptions, runPlinth } from "../run-plinth.fixture.ts";

let server: CinemaServer;
beforeEach(() => start());

async function start(options: CinemaOptions = {}): Promise<void> {
	const started = await startCinema(options);
	server = started;
	onTestFinished(() => started[Symbol.asyncDispose]());
}

const films = (...names: readonly string[]) =>
	names.map((name) => `type: Film\nname: ${name}\ndata: {title: ${name}}\n`).join("---\n");

function apply(stdin: string, args: readonly string[], options: RunOptions = {}) {
	return runPlinth(["apply", "-f", "-", ...args, "--server", server.address], {
		...options,
		stdin,
	});
}

async function stored(): Promise<readonly string[]> {
	const { out } = await runPlinth(["get", "Film", "-o", "name", "--server", server.address]);
	return out.trim().split("\n");
}

/** The set that a film is marked with. */
async function markOf(name: string): Promise<string | undefined> {
	const { resource } = await server.client.read({ id: idOf(Film, name) });
	return resource?.metadata["apply-set"];
}

const prune = ["--set", "shop", "--prune", "Film"];

describe("apply --prune", () => {
	it("deletes what the set had and the files lack, and nothing else", async () => {
		await apply(films("other"), []);
		await apply(films("foreign"), ["--set", "archive"]);
		await apply(films("alien", "brazil", "casablanca"), ["--set", "shop"]);
		const dry = await apply(films("alien"), [...prune, "--dry-run=server"]);
		expect(dry.out).toContain("cinema.v1.Film/brazil would be pruned (server dry run)\n");
		expect(await stored()).toHaveLength(5);
		const { code, out } = await apply(films("alien"), [...prune, "--yes"]);
		expect(code).toBe(0);
		expect(out).toBe(
			"cinema.v1.Film/alien unchanged\ncinema.v1.Film/brazil pruned\ncinema.v1.Film/casablanca pruned\n",
		);
		expect(await stored()).toEqual(
			["alien", "foreign", "other"].map((name) => `cinema.v1.Film/${name}`),
		);
	});

	it("asks, and deletes nothing without a yes", async () => {
		await apply(films("alien", "brazil"), ["--set", "shop"]);
		const questions: string[] = [];
		const answer = (text: string) => ({
			isInteractive: true,
			ask: async (question: string) => {
				questions.push(question);
				return text;
			},
		});
		const refused = await apply(films("alien"), prune, answer(""));
		expect(refused.out).toContain("cinema.v1.Film/brazil is in the set, and in no file\n");
		expect(refused.err).toBe("plinth: nothing was pruned\n");
		expect(await stored()).toHaveLength(2);
		const agreed = await apply(films("alien"), prune, answer("y"));
		expect(agreed.out).toContain("cinema.v1.Film/brazil pruned\n");
		expect(questions).toEqual(["Delete this resource? [y/N] ", "Delete this resource? [y/N] "]);
		const again = await apply(films("alien"), prune, answer("must not be asked"));
		expect(again.out).toBe("cinema.v1.Film/alien unchanged\n");
	});

	it("prunes nothing if a document was not applied, or the flags are incomplete", async () => {
		await apply(films("alien", "brazil"), ["--set", "shop"]);
		const failed = await apply(`${films("alien")}---\ntype: Film\nname: bad\ndata: {}\n`, [
			...prune,
			"--yes",
		]);
		expect(failed.code).not.toBe(0);
		expect(failed.err).toContain("nothing is pruned, since not all documents were applied");
		for (const [args, problem] of [
			[["--prune", "Film", "--yes"], "name it with --set"],
			[prune, "pass --yes"],
			[["--set", "Shop!"], "the name of a set must consist of lower-case letters"],
			[["--set", "shop", "--prune", "Nope", "--yes"], "unknown type Nope"],
		] as const) {
			const { code, err } = await apply(films("alien"), args);
			expect([code, err]).toEqual([2, expect.stringContaining(problem)]);
		}
		expect(await stored()).toHaveLength(2);
	});

	it("takes no resource from another set, and keeps the mark without --set", async () => {
		await apply(films("alien"), ["--set", "shop"]);
		const { code, err } = await apply(films("alien"), ["--set", "archive"]);
		expect(code).toBe(4);
		expect(err).toContain("belongs to the set shop: apply it with --set shop");
		await apply(`${films("alien")}metadata: {team: a}\n`, []);
		expect((await apply(films("brazil"), [...prune, "--yes"])).out).toContain("alien pruned");
	});

	it("takes a resource out of its set if its document says so, also into another set", async () => {
		const leaving = `${films("alien")}metadata: {apply-set: ""}\n`;
		await apply(films("alien"), ["--set", "shop"]);
		expect((await apply(films("alien"), ["--set", "archive"])).err).toContain(
			'or take it out of that set with apply-set: "" in its metadata',
		);
		expect((await apply(leaving, [])).out).toBe("cinema.v1.Film/alien updated\n");
		expect(await markOf("alien")).toBeUndefined();
		await apply(films("alien"), ["--set", "shop"]);
		expect((await apply(leaving, ["--set", "archive"])).code).toBe(0);
		expect(await markOf("alien")).toBe("archive");
	});

	it("ignores the mark in a document that was copied from a resource of a set", async () => {
		await apply(films("alien"), ["--set", "shop"]);
		const { out } = await runPlinth([
			...["get", "Film", "alien", "-o", "yaml", "--server", server.address],
		]);
		expect(out).toContain("apply-set: shop");
		const copy = `${films("brazil")}metadata: {apply-set: shop, team: a}\n`;
		await apply(copy, []);
		expect(await markOf("brazil")).toBeUndefined();
		expect((await apply(films("alien"), [...prune, "--yes"])).out).not.toContain("pruned");
		await apply(copy, ["--set", "archive"]);
		expect(await markOf("brazil")).toBe("archive");
		expect((await apply(copy, [])).out).toBe("cinema.v1.Film/brazil unchanged\n");
		expect(await markOf("brazil")).toBe("archive");
	});

	it("deletes resources in each version of the type", async () => {
		await start({ types: [HallV2] });
		const hall = (version: string, name: string) => `type: cinema.${version}.Hall\nname: ${name}\n`;
		await apply(`${hall("v1", "main")}---\n${hall("v2", "small")}`, ["--set", "shop"]);
		for (const { type } of [Hall, HallV2]) {
			const all = await server.client.list({ type, tenancy: { partition: "default" } });
			expect(all.resources).toHaveLength(1);
		}
		const args = ["--set", "shop", "--prune", "cinema.v2.Hall", "--yes"];
		const { code, out } = await apply(films("alien"), args);
		expect(code).toBe(0);
		expect(out).toContain("cinema.v1.Hall/main pruned\n");
		expect(out).toContain("cinema.v2.Hall/small pruned\n");
	});

	it("says which deletions wait", async () => {
		await apply(`${films("alien")}metadata: {finalizers: archive}\n`, ["--set", "shop"]);
		const { out } = await apply(films("brazil"), [...prune, "--yes"]);
		expect(out).toContain("cinema.v1.Film/alien pruned: marked for deletion, and waits");
	});
});
