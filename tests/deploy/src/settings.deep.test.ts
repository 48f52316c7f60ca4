import { expect, it } from "vitest";
import { dockerfiles, manifests, textOf, unit, variablesOfServer } from "./artifacts.fixture.ts";

const known = variablesOfServer();

it.each([...dockerfiles, unit, ...manifests])("%s names settings that the server has", (file) => {
	const named = [...textOf(file).matchAll(/\bPLINTH_[A-Z_]+/g)].map(([name]) => name);
	expect(named.length).toBeGreaterThan(0);
	expect(named.filter((name) => !known.has(name))).toEqual([]);
});
