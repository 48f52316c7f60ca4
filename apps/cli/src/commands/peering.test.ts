import { create } from "@bufbuild/protobuf";
import { PartitionSchema } from "@plinth/proto";
import { ExportSchema, ImportSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import { defineType, idOf, Partition, resourceOf, typeOf } from "@plinth/resource";
import { silentLogger } from "@plinth/runtime";
import { createServer } from "@plinth/server";
import { defineModule } from "@plinth/server/module";
import { expect, it, onTestFinished } from "vitest";
import { FilmSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film } from "../cinema.fixture.ts";
import { startRestoredCinemas } from "../restored-cinemas.fixture.ts";
import { runPlinth } from "../run-plinth.fixture.ts";

const Export = defineType(ExportSchema);
const Import = defineType(ImportSchema);

async function start() {
	const server = createServer({
		storage: { kind: "memory" },
		listen: { host: "127.0.0.1", port: 0 },
		modules: [defineModule({ name: "cinema", types: [Film] })],
		logger: silentLogger,
	});
	await server.start();
	onTestFinished(() => server.stop());
	const run = (args: readonly string[], stdin = "") =>
		runPlinth([...args, "--server", server.address], { stdin });
	return { server, run };
}

it("peering joins two clusters, and lists what is copied", async () => {
	const west = await start();
	const east = await start();
	const { out: token } = await west.run(["peering", "token", "east"]);
	expect((await west.run(["peering", "list"])).out).toMatch(/^east +exports +NotEstablished/m);
	const established = await east.run(["peering", "establish", "-", "--name", "west"], token);
	expect(established).toEqual({ code: 0, out: "peering west established\n", err: "" });
	expect((await west.run(["peering", "list"])).out).toMatch(/^east +exports +Established/m);
	const again = await east.run(["peering", "establish", token, "--name", "west"]);
	expect(again.code).not.toBe(0);
	expect(again.err).toMatch(/refused: the token is unknown, was used, or was replaced/);
	await west.server.client.write({
		resource: resourceOf(Film, {
			id: idOf(Film, "alien"),
			data: create(FilmSchema, { title: "Alien" }),
		}),
	});
	const exported = { peers: ["east"], partition: "default", types: [{ type: typeOf(Film.type) }] };
	const imported = { peer: "west", export: "films", partition: "west" };
	await west.server.client.write({
		resource: resourceOf(Export, {
			id: idOf(Export, "films"),
			data: create(ExportSchema, exported),
		}),
	});
	await east.server.client.write({
		resource: resourceOf(Import, {
			id: idOf(Import, "films"),
			data: create(ImportSchema, imported),
		}),
	});
	await expect
		.poll(async () => (await east.run(["peering", "list"])).out, { timeout: 300_000 })
		.toMatch(
			/^PEERING +ROLE +IMPORT +PARTITION +STATE +COPIES +LEFT-OUT +LAG +AGE +MESSAGE *\nwest +imports +films +west +Streaming +1 +0 +0s +\d+s *\n$/,
		);
	expect(JSON.parse((await east.run(["peering", "list", "-o", "json"])).out)).toMatchObject([
		{ name: "west", imports: [{ name: "films", copies: { "cinema.v1.Film": "1" } }] },
	]);
	expect((await east.run(["get", "Film", "-p", "west"])).out).toContain("alien");
	expect((await east.run(["describe", "Film", "alien", "-p", "west"])).out).toMatch(
		/^origin: +a copy of default\/default\/alien in the cluster \w{26}, from the peering west$/m,
	);
	expect((await east.run(["describe", "Partition", "west"])).out).toMatch(
		/^origin: +made by an import from the peering west$/m,
	);
});

it("peering list says what to do if there is no peering, and shows an Import that names none", async () => {
	const { server, run } = await start();
	expect(await run(["peering", "list"])).toEqual({
		code: 0,
		out: "",
		err: "no peerings; in the cluster that exports, create a token with: plinth peering token NAME\n",
	});
	expect((await run(["peering", "list", "-o", "json"])).out).toBe("[]\n");
	const data = create(ImportSchema, { peer: "west", export: "films", partition: "west" });
	await server.client.write({ resource: resourceOf(Import, { id: idOf(Import, "films"), data }) });
	await expect
		.poll(async () => (await run(["peering", "list"])).out, { timeout: 300_000 })
		.toMatch(
			/^west +imports +films +west +PeeringMissing +0 +0 +never complete +never +there is no peering west here/m,
		);
});

it("peering refuses what is not a token, and a file that is missing", async () => {
	const { run } = await start();
	const malformed = await run(["peering", "establish", "x"]);
	expect(malformed.code).not.toBe(0);
	expect(malformed.err).toContain("token invalid: it must start with plinth-peering-1.");
	const missing = await run(["peering", "token", "east", "--peer-ca-file", "/nowhere/ca.pem"]);
	expect(missing.err).toMatch(/can't read \/nowhere\/ca.pem: /);
});

it("peering list shows the copies of another region", async () => {
	const { first, run } = await startRestoredCinemas({});
	const data = create(PartitionSchema, { copies: { regions: ["r1", "r2"] } });
	await first.client.write({
		resource: resourceOf(Partition, { id: idOf(Partition, "default"), data }),
	});
	await expect
		.poll(async () => (await run(["peering", "list"])).out, { timeout: 300_000 })
		.toMatch(
			/^PEERING +ROLE +IMPORT +PARTITION +STATE +COPIES +LEFT-OUT +LAG +AGE +MESSAGE *\nr1 +region +default +Streaming +1 +0 +0s +\d+s *\n$/,
		);
}, 300_000);
