import { createRegistry } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { KnownTypes } from "@plinth/documents";
import { Namespace } from "@plinth/resource";
import { Film, Hall } from "./cinema.fixture.ts";

/** The types of the tests, as a server would have told of them. */
export function cinemaTypes(): KnownTypes {
	const types = [Film, Hall, Namespace];
	return new KnownTypes(
		types.map(({ type, key, scope, schema }) => ({ type, key, scope, schema })),
		createRegistry(...types.map(({ schema }) => schema.file), AnySchema),
	);
}
