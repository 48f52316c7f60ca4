import { toBinary } from "@bufbuild/protobuf";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import type { LiveState } from "../live-state.ts";
import type { ViewContent, ViewRequest } from "../view.ts";
import { FollowedList } from "./followed-list.ts";
import type { ServerLink } from "./server-link.ts";
import type { ViewSource } from "./view-source.ts";

/** Follows one resource. */
export class ResourceView implements ViewSource {
	readonly #list: FollowedList;
	#resource: Resource | undefined;
	#isPresent = false;
	#isChanged = true;

	/** @param onChange - called when there may be something to take, or another state. */
	constructor(
		link: ServerLink,
		{ type, tenancy, name }: Extract<ViewRequest, { kind: "resource" }>,
		onChange: () => void,
	) {
		const key = nameKey({ type, tenancy, name });
		this.#list = new FollowedList(
			link,
			// Others begin with the same name.
			() => ({ type, tenancy, namePrefix: name }),
			{
				onChanges: (changes) => {
					const change = changes.findLast((each) => each.key === key);
					if (change !== undefined) {
						this.#isPresent = change.kind !== "deleted";
						this.#resource = change.kind === "deleted" ? this.#resource : change.resource;
						this.#isChanged = true;
						onChange();
					}
				},
				onState: onChange,
			},
		);
	}

	get state(): LiveState {
		return this.#list.state;
	}

	start(): void {
		this.#list.start();
	}

	pause(): void {
		this.#list.pause();
	}

	reshape(): void {}

	take(): ViewContent | undefined {
		if (!this.#isChanged) {
			return undefined;
		}
		this.#isChanged = false;
		const bytes = this.#resource && toBinary(ResourceSchema, this.#resource);
		return { kind: "resource", bytes, isPresent: this.#isPresent };
	}

	close(): void {
		this.#list.pause();
	}
}
