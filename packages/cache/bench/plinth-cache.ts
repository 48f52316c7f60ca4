import type { ID, Reference } from "@plinth/proto";
import { Album } from "../src/demo-types.fixture.ts";
import {
	type Cache,
	createCache,
	defineIndex,
	ownerIndex,
	type Queries,
	referenceIndex,
	referencesIndex,
} from "../src/index.ts";
import type { Contender, IndexCount } from "./contender.ts";
import type { AlbumItem } from "./data-set.ts";

const byLabel = referenceIndex("label", Album, (album) => album.data.label);
const byGenre = referencesIndex("genre", Album, (album) => album.data.artists);
const byOwner = ownerIndex(Album);
const byPath = defineIndex("path", Album, {
	keys: (album) => [album.data.path.split("/")],
	key: (path: string) => path.split("/"),
});
const byTitle = defineIndex("title", Album, {
	keys: (album) => [[album.data.title]],
	key: (title: string) => [title],
});
const all = [byLabel, byGenre, byPath, byOwner, byTitle];

/** The cache of this package. */
export class PlinthCache implements Contender {
	readonly cache: Cache<Queries>;

	constructor(indexes: IndexCount) {
		this.cache = createCache({ types: [Album], indexes: all.slice(0, indexes) });
	}

	insertAll(items: readonly AlbumItem[]): void {
		for (const { resource } of items) {
			this.cache.insert(resource);
		}
	}

	deleteAll(ids: readonly ID[]): void {
		for (const id of ids) {
			this.cache.delete(id);
		}
	}

	getAll(ids: readonly ID[]): number {
		let found = 0;
		for (const id of ids) {
			if (this.cache.get(Album, id)?.resource !== undefined) {
				found++;
			}
		}
		return found;
	}

	listLabels(labels: readonly Reference[]): number {
		let listed = 0;
		for (const label of labels) {
			listed += this.cache.list(byLabel, label).length;
		}
		return listed;
	}

	listGenres(genres: readonly Reference[]): number {
		let listed = 0;
		for (const genre of genres) {
			listed += this.cache.list(byGenre, genre).length;
		}
		return listed;
	}

	parents(paths: readonly string[]): number {
		let found = 0;
		for (const path of paths) {
			found += this.cache.parents(byPath, path).length;
		}
		return found;
	}
}
