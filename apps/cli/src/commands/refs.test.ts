import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	Lifecycle,
	ResourceShadowSchema,
	type ShadowSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { defineType, idOf, resourceOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { FilmSchema, HallSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film, Hall } from "../cinema.fixture.ts";
import { type CinemaServer, startCinema } from "../cinema-server.fixture.ts";
import { runPlinth } from "../run-plinth.fixture.ts";

const ResourceShadow = defineType(ResourceShadowSchema);

const alienKey = {
	group: "cinema",
	kind: "Film",
	partition: "default",
	namespace: "default",
	name: "alien",
};
const hallKey = { ...alienKey, kind: "Hall", namespace: "", name: "one" };

async function record(
	{ client }: CinemaServer,
	name: string,
	value: MessageInitShape<typeof ShadowSchema>,
) {
	const data = create(ResourceShadowSchema, { record: { case: "shadow", value } });
	await client.write({
		resource: resourceOf(ResourceShadow, { id: idOf(ResourceShadow, name), data }),
	});
}

async function startWithFilms(types: readonly (typeof ResourceShadow)[]): Promise<CinemaServer> {
	const server = await startCinema({ types });
	const data = create(FilmSchema, { title: "Alien" });
	await server.client.write({ resource: resourceOf(Film, { id: idOf(Film, "alien"), data }) });
	const hall = resourceOf(Hall, { id: idOf(Hall, "one"), data: create(HallSchema) });
	await server.client.write({ resource: hall });
	return server;
}

describe("refs", () => {
	it("tells both directions, the deployments, and how far a deletion is", async () => {
		await using server = await startWithFilms([ResourceShadow]);
		await record(server, "a", {
			resource: alienKey,
			lifecycle: Lifecycle.DELETING,
			outgoing: [{ path: "hall", target: hallKey, rule: OnDelete.UNSET }],
			sources: [
				{
					deployment: { service: "tickets", region: "eu" },
					rules: [OnDelete.BLOCK, OnDelete.UNSET],
					tentative: true,
				},
			],
			progress: { waitingFor: ["tickets in eu"] },
		});
		await record(server, "b", {
			resource: hallKey,
			outgoing: [{ path: "shows[0]", target: alienKey, targetUid: "x", rule: OnDelete.BLOCK }],
		});
		const refs = await runPlinth(["refs", "film", "alien", "--server", server.address]);
		expect(refs).toEqual({
			code: 0,
			out: `references:
  FIELD  TARGET                   ON-DELETE  NOTE
  hall   cinema.Hall default/one  unset      missing
referenced by:
  RESOURCE                 FIELD     ON-DELETE
  cinema.Hall default/one  shows[0]  block
referenced from deployments:
  SERVICE  REGION  ON-DELETE     NOTE
  tickets  eu      block, unset  not confirmed yet
state:
  being deleted, waiting for tickets in eu
deletion:
  would be accepted
`,
			err: "",
		});
	});

	it("prints none if there are none, and reports that the server has no shadows", async () => {
		await using server = await startWithFilms([ResourceShadow]);
		const { out } = await runPlinth(["refs", "Hall/one", "--server", server.address]);
		expect(out).toContain("referenced by:\n  none\n");
		await using other = await startWithFilms([]);
		const refused = await runPlinth(["refs", "Hall/one", "--server", other.address]);
		expect(refused.code).toBe(1);
		expect(refused.err).toContain("it has no type schema.v1.ResourceShadow");
	});
});
