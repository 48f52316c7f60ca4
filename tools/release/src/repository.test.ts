import { expect, it } from "vitest";
import { repositoryAt } from "./repository.ts";

it.each([
	"git@code.example:acme/plinth.git",
	"https://code.example/acme/plinth",
	"https://user:secret@code.example/acme/plinth.git",
	"ssh://git@code.example:22/acme/plinth.git",
	"git+https://code.example/acme/plinth.git\n",
])("a package names the repository at %s without what only this clone needs", (remote) => {
	expect(repositoryAt(remote)).toEqual({
		type: "git",
		url: "git+https://code.example/acme/plinth.git",
	});
});

it.each(["", "/srv/plinth.git", "../plinth", "file:///srv/plinth.git"])(
	"it names none at %j, which is of this machine",
	(remote) => {
		expect(repositoryAt(remote)).toBeUndefined();
	},
);
