import { contentOf, type KnownType, type KnownTypes, type Problem } from "@plinth/documents";
import { toYaml, type WantedResource } from "@plinth/documents/yaml";
import { type Resource, ResourceService } from "@plinth/proto";
import { useMutation } from "@tanstack/react-query";
import { useDeferredValue, useMemo, useState } from "react";
import { useConnection } from "../app/connection.ts";
import { readDraft, resourceOfDraft } from "./draft.ts";
import { type MergeConflict, mergeDocuments, withValue } from "./merge-documents.ts";
import { ConflictError, hasSameContent, save } from "./saving.ts";

/** What is edited. */
export interface EditingOptions {
	readonly type: KnownType;
	readonly types: KnownTypes;
	readonly place: { readonly partition: string; readonly namespace: string };
	/** The resource to edit; `undefined` to create one. */
	readonly resource?: Resource;
	/** The resource as it is now. */
	readonly newest?: Resource | undefined;
	readonly initialText: string;
	readonly onSaved: (resource: Resource) => void;
}

/** A document that is being edited. */
export interface Editing {
	readonly text: string;
	readonly setText: (text: string) => void;
	readonly problems: readonly Problem[];
	/** Whether there is no such resource yet. */
	readonly isNew: boolean;
	/** The document before the changes. */
	readonly before: string;
	/** What the server would store; `undefined` unless it has checked this text. */
	readonly after: string | undefined;
	readonly conflicts: readonly MergeConflict[];
	/** What a merge has done; empty if there was none. */
	readonly merged: string;
	/** Whether somebody else has changed the resource, and that is not in the document. */
	readonly isOutdated: boolean;
	readonly error: Error | null;
	readonly isPending: boolean;
	/** Asks the server to check the text. */
	readonly review: () => void;
	readonly apply: () => void;
	/** Puts the changes of somebody else into the document. */
	readonly mergeNewest: () => void;
	readonly choose: (conflict: MergeConflict, value: MergeConflict["mine"]) => void;
}

/** Edits a document: nothing is stored before it was reviewed and applied, and changes of others are merged into it. */
export function useEditing(options: EditingOptions): Editing {
	const { type, types, place, resource, newest, initialText, onSaved } = options;
	const resources = useConnection().client(ResourceService);
	const [edited, setEdited] = useState(resource);
	const [text, setText] = useState(initialText);
	const [reviewed, setReviewed] = useState<{ text: string; after: string }>();
	const merging = useMerging(types);
	const read = (of: string) => readDraft(of, { type, types, place, ...(edited && { edited }) });
	const readText = useDeferredValue(text);
	// biome-ignore lint/correctness/useExhaustiveDependencies: what reading depends on
	const { wanted, problems } = useMemo(
		() => read(readText),
		[readText, type, types, place, edited],
	);
	const merge = (theirs: Resource) => {
		if (wanted !== undefined && edited !== undefined) {
			setText(merging.merge(edited, resourceOfDraft(wanted, edited), theirs));
			setEdited(theirs);
		}
	};
	const review = useMutation({
		mutationFn: async (checked: string) => {
			const planned = resourceOfDraft(wantedOf(read(checked)), edited);
			const { resource: after } = await resources.mutateAndValidate({ resource: planned });
			return { text: checked, after: toYaml(contentOf(after ?? planned, types)) };
		},
		onSuccess: setReviewed,
	});
	const saving = useMutation({
		mutationFn: async () => save(resources, wantedOf(read(text)), edited, types),
		onSuccess: onSaved,
		onError: (error) => error instanceof ConflictError && merge(error.theirs),
	});
	const isReviewed = reviewed?.text === text && merging.conflicts.length === 0;
	return {
		...{ text, setText, problems, mergeNewest: () => newest && merge(newest) },
		...{ conflicts: merging.conflicts, merged: merging.merged },
		isNew: edited === undefined,
		before: edited === undefined ? "" : toYaml(contentOf(edited, types)),
		after: isReviewed ? reviewed?.after : undefined,
		isOutdated: Boolean(edited && newest && !hasSameContent(edited, newest, types)),
		error: review.error ?? (saving.error instanceof ConflictError ? null : saving.error),
		isPending: review.isPending || saving.isPending,
		review: () => review.mutate(text),
		apply: () => saving.mutate(),
		choose: (conflict, value) => {
			if (wanted !== undefined) {
				const document = contentOf(resourceOfDraft(wanted, edited), types);
				setText(toYaml(withValue(document, conflict.path, value)));
			}
			merging.settle(conflict);
		},
	};
}

/** The conflicts of the last merge. */
function useMerging(types: KnownTypes) {
	const [conflicts, setConflicts] = useState<readonly MergeConflict[]>([]);
	const [merged, setMerged] = useState("");
	return {
		conflicts,
		merged,
		/** Returns the document with both changes. */
		merge: (edited: Resource, mine: Resource, theirs: Resource): string => {
			const { document, conflicts: found } = mergeDocuments(
				contentOf(edited, types),
				contentOf(mine, types),
				contentOf(theirs, types),
			);
			setConflicts(found);
			setMerged(
				found.length === 0
					? "It was changed by somebody else. Both changes are in the document: review it again."
					: "It was changed by somebody else, also in fields that you have changed. Choose their values, and review it again.",
			);
			return toYaml(document);
		},
		settle: (conflict: MergeConflict) =>
			setConflicts((before) => before.filter((each) => each !== conflict)),
	};
}

function wantedOf({ wanted }: ReturnType<typeof readDraft>): WantedResource {
	if (wanted === undefined) {
		throw new Error("the document has problems");
	}
	return wanted;
}
