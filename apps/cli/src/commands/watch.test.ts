import { create } from "@bufbuild/protobuf";
import { Condition_State } from "@plinth/proto";
import { idOf, resourceOf } from "@plinth/resource";
import { PolicyAuthorizer } from "@plinth/resource-service";
import type { Clock } from "@plinth/runtime";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FilmSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film } from "../cinema.fixture.ts";
import { type CinemaServer, startCinema } from "../cinema-server.fixture.ts";
import { runPlinth, startPlinth } from "../run-plinth.fixture.ts";

let server: CinemaServer;
beforeEach(async () => {
	timeouts = [];
	server = await startCinema();
});
afterEach(() => server[Symbol.asyncDispose]());

/** Timers that are as long as the timeouts of commands: they fire when the test says so. */
let timeouts: (() => void)[];
const passTime = () => {
	for (const fire of timeouts) {
		fire();
	}
};

/** Every age is 0 s, reconnections don't wait, and timeouts are the test's. */
const clock: Clock = {
	now: () => 0,
	monotonic: () => 0,
	setTimer(delayMs, callback) {
		if (delayMs < 20_000) {
			const immediate = setImmediate(callback);
			return { cancel: () => clearImmediate(immediate) };
		}
		timeouts.push(callback);
		return { cancel: () => {} };
	},
};

async function put(name: string, title = name, finalizers?: string) {
	const { resource } = await server.client.write({
		resource: resourceOf(Film, {
			id: idOf(Film, name),
			data: create(FilmSchema, { title }),
			...(finalizers !== undefined && { metadata: { finalizers } }),
		}),
	});
	return resource;
}

const remove = (name: string) => server.client.delete({ id: idOf(Film, name) });

async function report(name: string, state: Condition_State, observedGeneration?: string) {
	const { resource } = await server.client.read({ id: idOf(Film, name) });
	await server.client.writeStatus({
		...(resource?.id && { id: resource.id }),
		key: "critic",
		status: {
			observedGeneration: observedGeneration ?? resource?.generation ?? "",
			conditions: [{ type: "Shown", state, reason: "Said", message: "so" }],
		},
	});
}

const start = (...args: readonly string[]) =>
	startPlinth([...args, "--server", server.address], { clock });

describe("get -w", () => {
	it("prints what watch does", async () => {
		await put("alien");
		const command = start("get", "film", "-w", "-o", "name");
		await command.prints("alien");
		await put("brazil");
		await command.prints("brazil");
		command.interrupt();
		expect((await command.ended).out).toBe("cinema.v1.Film/alien\ncinema.v1.Film/brazil\n");
	});
});

describe("watch", () => {
	it("prints what there is, and changes as they come, until it is interrupted", async () => {
		await put("alien");
		const watch = start("watch", "film");
		await watch.prints("present");
		await put("brazil");
		await watch.prints("added");
		await put("alien", "Alien");
		await watch.prints("changed");
		await remove("brazil");
		await watch.prints("deleted");
		watch.interrupt();
		expect(await watch.ended).toEqual({
			code: 130,
			out: `EVENT    NAME   TITLE  GENRE  ACTORS  STATUS  AGE
present  alien  alien                         0s
added    brazil  brazil                         0s
changed  alien  Alien                         0s
deleted  brazil  brazil                         0s
`,
			err: "",
		});
	});

	it("prints a line of JSON for each change", async () => {
		await put("alien");
		const watch = start("watch", "film", "-o", "json");
		await watch.prints("\n");
		watch.interrupt();
		expect(JSON.parse((await watch.ended).out)).toMatchObject({
			event: "present",
			resource: { name: "alien", data: { title: "alien" } },
		});
	});

	it("is of one resource where it is named, and of changes alone where that is asked for", async () => {
		await put("alien");
		await put("alien-two");
		const watch = start("watch", "film", "alien", "--changes-only");
		await watch.prints("EVENT");
		await put("alien-two", "other");
		await put("alien", "Alien");
		await watch.prints("changed");
		watch.interrupt();
		expect((await watch.ended).out).toMatch(/^EVENT .*\nchanged +alien +Alien .*\n$/);
	});

	it("resumes where it was when the connection breaks: nothing is missed, nothing told twice", async () => {
		await put("alien");
		await put("brazil");
		const watch = start("watch", "film", "-o", "name");
		await watch.prints("Film/brazil");
		await put("cube");
		await watch.prints("Film/cube");
		await server.stop();
		await watch.prints("lost the connection");
		await put("dune");
		await remove("alien");
		await server.restart();
		await watch.prints("Film/dune");
		await put("elling");
		await watch.prints("Film/elling");
		watch.interrupt();
		const { out, err } = await watch.ended;
		expect(out.replaceAll("cinema.v1.Film/", "").trim().split("\n")).toEqual([
			...["alien", "brazil", "cube", "dune", "alien", "elling"],
		]);
		expect(err).toContain(`plinth: warning: reconnected to ${server.address}\n`);
		expect(err.match(/lost the connection/g)).toHaveLength(1);
	});

	it("ends where the server can't be reached at first, or refuses", async () => {
		await server.stop();
		expect(await start("watch", "film").ended).toMatchObject({ code: 6 });
		await server.restart();
		const authorizer = new PolicyAuthorizer();
		authorizer.grant("writer", {
			subject: "writer",
			rules: [{ operations: ["operator:write"], type: "cinema.*" }],
		});
		await using guarded = await startCinema({ authorizer });
		const refused = await runPlinth([
			...["watch", "film", "--server", guarded.address, "--token", "writer"],
		]);
		expect(refused).toEqual({
			code: 5,
			out: "",
			err: "plinth: not allowed: writer lacks operator:read on cinema.v1.Film\n",
		});
	});
});

describe("wait", () => {
	it("ends at once where the condition holds already", async () => {
		await put("alien");
		await report("alien", Condition_State.TRUE);
		expect(await start("wait", "film", "alien", "--for=condition=Shown").ended).toEqual({
			code: 0,
			out: "cinema.v1.Film/alien Shown\n",
			err: "",
		});
	});

	it("ends when the condition comes to hold, of the content as it is now", async () => {
		const before = await put("alien");
		await put("alien", "other");
		await report("alien", Condition_State.TRUE, before?.generation);
		const wait = start("wait", "film/alien", "--for=condition=Shown=true", "--timeout=1h");
		await wait.prints(
			"waiting for cinema.v1.Film/alien: Shown is True (Said, so), of an older generation\n",
		);
		await report("alien", Condition_State.TRUE);
		expect(await wait.ended).toMatchObject({ code: 0, out: "cinema.v1.Film/alien Shown\n" });
	});

	it("says after its time what it saw last, with exit code 7", async () => {
		await put("alien");
		await report("alien", Condition_State.FALSE);
		const wait = start("wait", "film", "alien", "--for=condition=Shown");
		await wait.prints("waiting");
		passTime();
		const { code, err } = await wait.ended;
		expect(code).toBe(7);
		expect(err).toContain(
			"plinth: cinema.v1.Film default/default/alien is not yet Shown after 30s: Shown is False (Said, so)\n",
		);
		const misspelled = start("wait", "film", "alien", "--for=condition=Shwon");
		await misspelled.prints("no condition Shwon is reported; did you mean Shown?");
		misspelled.interrupt();
		expect(await misspelled.ended).toMatchObject({ code: 130 });
		expect(await start("wait", "film", "alien", "--for=condition=Shown=False").ended).toMatchObject(
			{ code: 0 },
		);
	});

	it("looks once if its time is 0", async () => {
		await put("alien");
		const once = (...args: readonly string[]) =>
			start("wait", "film", "alien", ...args, "--timeout=0s").ended;
		expect(await once("--for=create")).toMatchObject({ code: 0 });
		expect(await once("--for=delete")).toEqual({
			code: 7,
			out: "",
			err: "plinth: cinema.v1.Film default/default/alien is not deleted: it exists\n",
		});
		await report("alien", Condition_State.FALSE);
		expect((await once("--for=condition=Shown")).err).toBe(
			"plinth: cinema.v1.Film default/default/alien is not Shown: Shown is False (Said, so)\n",
		);
	});

	it("waits for deletions and creations", async () => {
		expect(await start("wait", "film", "x", "--for=delete").ended).toMatchObject({ code: 0 });
		await put("alien");
		const gone = start("wait", "film", "alien", "--for=delete");
		const there = start("wait", "film", "new", "--for=create");
		await gone.prints("waiting for cinema.v1.Film/alien: it exists");
		await there.prints("waiting for cinema.v1.Film/new: it does not exist");
		await remove("alien");
		await put("new");
		expect(await gone.ended).toMatchObject({ code: 0, out: "cinema.v1.Film/alien deleted\n" });
		expect(await there.ended).toMatchObject({ code: 0, out: "cinema.v1.Film/new created\n" });
	});

	it.each([
		[["film", "nope", "--for=condition=Shown"], 3, "cinema.v1.Film default/default/nope not found"],
		[["film", "--for=delete"], 2, "name at least one resource: film NAME…"],
		[["film", "a", "--for=Shown"], 2, 'can\'t wait for "Shown": --for must be condition=TYPE'],
		[
			["film", "a", "--for=delete", "--timeout=soon"],
			2,
			'--timeout "soon" is not a duration: write it as 500ms, 30s, 2m or 1h',
		],
	])("refuses %j", async (args, code, message) => {
		const ended = await start("wait", ...args).ended;
		expect(ended.err).toContain(message);
		expect(ended.code).toBe(code);
	});
});

describe("delete", () => {
	it("deletes by name, and says what is not there with exit code 3", async () => {
		await put("alien");
		await put("brazil");
		expect(await start("delete", "film", "alien", "nope", "brazil").ended).toEqual({
			code: 3,
			out: "cinema.v1.Film/alien deleted\ncinema.v1.Film/brazil deleted\n",
			err: "plinth: cinema.v1.Film default/default/nope not found\n",
		});
		expect(await start("delete", "film", "nope", "--ignore-not-found").ended).toEqual({
			code: 0,
			out: "",
			err: "",
		});
	});

	it("deletes what files name, the last first", async () => {
		await put("alien");
		await put("brazil");
		const files = ["delete", "-f", "-", "--server", server.address];
		const stdin = "type: Film\nname: alien\n---\ntype: Film\nname: brazil\n";
		expect((await runPlinth(files, { stdin })).out).toBe(
			"cinema.v1.Film/brazil deleted\ncinema.v1.Film/alien deleted\n",
		);
	});

	it("tells what the server has not completed within a second", async () => {
		await put("alien", "alien", "schema.plinth.dev/references");
		const args = ["delete", "film", "alien", "--server", server.address];
		expect(await runPlinth(args)).toMatchObject({
			code: 0,
			out: "cinema.v1.Film/alien marked for deletion: waiting for the resources that reference it\n",
		});
	});

	it("tells of finalizers, and waits for them where it is to", async () => {
		await put("alien", "alien", "archive");
		expect((await start("delete", "film", "alien", "--dry-run=server").ended).out).toContain(
			"(server dry run)",
		);
		const deletion = start("delete", "film", "alien", "--wait");
		await deletion.prints("marked for deletion: waiting for archive");
		await deletion.prints("it is marked for deletion, and waits for archive");
		const { out } = await start("get", "film").ended;
		expect(out).toContain("Deleting (waiting for archive)");
		const { resource } = await server.client.read({ id: idOf(Film, "alien") });
		await server.client.write({
			...(resource && {
				resource: { ...resource, metadata: { ...resource.metadata, finalizers: "" } },
			}),
		});
		expect(await deletion.ended).toMatchObject({ code: 0 });
	});

	it("refuses to guess what", async () => {
		expect((await start("delete").ended).code).toBe(2);
		expect((await start("delete", "film").ended).err).toContain(
			"name at least one resource: film NAME…",
		);
	});
});
