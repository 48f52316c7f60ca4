import { create } from "@bufbuild/protobuf";
import { idOf, resourceOf } from "@plinth/resource";
import { ulid } from "ulid";
import { expect, it } from "vitest";
import { FilmSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film } from "../cinema.fixture.ts";
import { cinemaTypes } from "../known-types.fixture.ts";
import { sorted } from "./sorted.ts";

it("orders by age, the youngest first, and what has no uid last", () => {
	const film = (name: string, uid: string) =>
		resourceOf(Film, { id: { ...idOf(Film, name), uid }, data: create(FilmSchema) });
	const all = [film("old", ulid(1_000)), film("none", ""), film("young", ulid(3_000))];
	const names = sorted(all, "age", cinemaTypes()).map(({ id }) => id?.name);
	expect(names).toEqual(["young", "old", "none"]);
});
