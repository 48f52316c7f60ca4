import { yaml } from "@codemirror/lang-yaml";
import { unifiedMergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { editorRoot, pageTheme } from "./yaml-editor.tsx";

/** The differences of two documents, line by line. */
export function DiffView({
	label,
	before,
	after,
}: {
	readonly label: string;
	readonly before: string;
	readonly after: string;
}) {
	const host = useRef<HTMLDivElement>(null);
	useEffect(() => {
		if (host.current === null) {
			return undefined;
		}
		const root = editorRoot(host.current);
		const view = new EditorView({
			root,
			parent: root,
			state: EditorState.create({
				doc: after,
				extensions: [
					...[yaml(), pageTheme, EditorState.readOnly.of(true), EditorView.lineWrapping],
					EditorView.contentAttributes.of({ "aria-label": label }),
					unifiedMergeView({
						original: before,
						mergeControls: false,
						gutter: false,
						collapseUnchanged: { margin: 3, minSize: 6 },
					}),
				],
			}),
		});
		return () => view.destroy();
	}, [label, before, after]);
	return <div ref={host} className="editor diff" />;
}
