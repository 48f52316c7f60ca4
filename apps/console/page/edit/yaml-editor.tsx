import {
	autocompletion,
	type CompletionContext,
	type CompletionResult,
	completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState, type Text } from "@codemirror/state";
import {
	drawSelection,
	EditorView,
	highlightActiveLine,
	keymap,
	lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Problem } from "@plinth/documents";
import { useEffect, useRef } from "react";
import type { Completion } from "./completions.ts";
import { fieldHover } from "./field-hover.ts";
import { type YamlCursor, type YamlKey, yamlCursor } from "./yaml-cursor.ts";

/** The colors of the page, in an editor. */
export const pageTheme = [
	EditorView.theme({
		"&": {
			height: "100%",
			backgroundColor: "var(--surface)",
			color: "var(--text)",
			fontSize: "13px",
		},
		"&.cm-focused": { outline: "none" },
		".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
		".cm-content": { caretColor: "var(--text)" },
		".cm-cursor": { borderLeftColor: "var(--text)" },
		".cm-gutters": {
			backgroundColor: "var(--surface)",
			color: "var(--muted)",
			borderRight: "1px solid var(--border)",
		},
		".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--accent) 7%, transparent)" },
		"&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
			{
				backgroundColor: "color-mix(in srgb, var(--accent) 25%, transparent)",
			},
		".cm-tooltip": {
			backgroundColor: "var(--surface)",
			color: "var(--text)",
			border: "1px solid var(--border)",
			borderRadius: "6px",
			overflow: "hidden",
		},
		// What is beside the list is within its element.
		".cm-tooltip.cm-tooltip-autocomplete": { overflow: "visible" },
		".cm-completionInfo, .cm-field-comment": {
			maxWidth: "min(48ch, 80vw)",
			padding: "4px 8px",
			fontFamily: "var(--sans)",
			whiteSpace: "pre-line",
			overflowWrap: "anywhere",
		},
		".cm-tooltip-autocomplete > ul > li[aria-selected]": {
			backgroundColor: "var(--accent)",
			color: "var(--on-accent)",
		},
		".cm-completionDetail": { marginLeft: "1em", color: "inherit", fontStyle: "normal" },
		".cm-diagnostic-error": { borderLeft: "3px solid var(--bad)" },
		// Their own ones are images in URLs, which the content security policy forbids.
		".cm-lintRange-error": {
			backgroundImage: "none",
			textDecoration: "underline wavy var(--bad) 1px",
		},
		".cm-lint-marker-error": {
			content: "''",
			width: "8px",
			height: "8px",
			margin: "5px 3px",
			borderRadius: "50%",
			backgroundColor: "var(--bad)",
		},
		".cm-changedLine": { backgroundColor: "var(--good-bg) !important" },
		".cm-changedText": {
			background: "color-mix(in srgb, var(--good) 18%, transparent) !important",
		},
		".cm-deletedChunk": { backgroundColor: "var(--bad-bg)", paddingLeft: 0 },
		// Changes are told by a sign, too: not everybody sees the colors.
		"&.cm-merge-b .cm-line, .cm-deletedLine": { paddingLeft: "1.6em", position: "relative" },
		".cm-changedLine::before, .cm-deletedLine::before": { position: "absolute", left: "0.4em" },
		".cm-changedLine::before": { content: "'+' / 'added'", color: "var(--good)" },
		".cm-deletedLine::before": { content: "'−' / 'removed'", color: "var(--bad)" },
		".cm-deletedChunk .cm-deletedText": {
			background: "color-mix(in srgb, var(--bad) 18%, transparent) !important",
		},
		".cm-collapsedLines": { backgroundColor: "var(--raised)", color: "var(--muted)" },
	}),
	syntaxHighlighting(
		HighlightStyle.define([
			{ tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
			{ tag: tags.comment, color: "var(--muted)" },
			{ tag: [tags.string, tags.number, tags.bool, tags.null], color: "var(--good)" },
		]),
	),
];

/** An element whose styles the content security policy allows: CodeMirror adopts them in a shadow root, and writes none. */
export function editorRoot(host: HTMLElement): ShadowRoot {
	return host.shadowRoot ?? host.attachShadow({ mode: "open" });
}

/** An editor of YAML. */
export function YamlEditor({
	label,
	value,
	problems,
	complete,
	commentOn,
	onChange,
	onReview,
}: {
	readonly label: string;
	/** Another value replaces what was written. */
	readonly value: string;
	readonly problems: readonly Problem[];
	readonly complete: (cursor: YamlCursor) => readonly Completion[];
	/** The comment of the field with this key. */
	readonly commentOn: (key: YamlKey) => string | undefined;
	readonly onChange: (text: string) => void;
	/** Ctrl-Enter was pressed. */
	readonly onReview: () => void;
}) {
	const host = useRef<HTMLDivElement>(null);
	const view = useRef<EditorView>(undefined);
	/** Texts of the editor that have not come back as its value: it may have another one by then. */
	const written = useRef(new Set<string>());
	const newest = useRef({ label, value, complete, commentOn, onChange, onReview });
	newest.current = { label, value, complete, commentOn, onChange, onReview };
	useEffect(() => {
		if (host.current === null) {
			return undefined;
		}
		const root = editorRoot(host.current);
		const opened = new EditorView({
			root,
			parent: root,
			state: EditorState.create({
				doc: newest.current.value,
				extensions: [
					...[lineNumbers(), history(), drawSelection(), highlightActiveLine(), lintGutter()],
					...[yaml(), indentUnit.of("  "), pageTheme],
					autocompletion({
						override: [(context) => completionsOf(context, newest.current.complete)],
					}),
					fieldHover((key) => newest.current.commentOn(key)),
					keymap.of([
						{ key: "Mod-Enter", run: () => review(newest.current) },
						// Tab indents; Escape and then Tab leaves the editor.
						...[indentWithTab, ...completionKeymap, ...lintKeymap],
						...[...historyKeymap, ...defaultKeymap],
					]),
					EditorView.contentAttributes.of({ "aria-label": newest.current.label }),
					EditorView.updateListener.of((update) => {
						if (update.docChanged) {
							const text = update.state.doc.toString();
							written.current.add(text);
							newest.current.onChange(text);
						}
					}),
				],
			}),
		});
		view.current = opened;
		opened.focus();
		return () => opened.destroy();
	}, []);
	useEffect(() => {
		const { doc } = view.current?.state ?? {};
		if (doc?.toString() === value) {
			written.current.clear();
		} else if (doc !== undefined && !written.current.delete(value)) {
			view.current?.dispatch({ changes: { from: 0, to: doc.length, insert: value } });
		}
	}, [value]);
	useEffect(() => {
		const { current } = view;
		if (current !== undefined) {
			const diagnostics = problems.map((problem) => diagnosticOf(problem, current.state.doc));
			current.dispatch(setDiagnostics(current.state, diagnostics));
		}
	}, [problems]);
	return <div ref={host} className="editor" />;
}

function review({ onReview }: { readonly onReview: () => void }): boolean {
	onReview();
	return true;
}

function completionsOf(
	context: CompletionContext,
	complete: (cursor: YamlCursor) => readonly Completion[],
): CompletionResult | null {
	const cursor = yamlCursor(context.state.sliceDoc(0, context.pos));
	if (cursor === undefined || (cursor.word === "" && !context.explicit)) {
		return null;
	}
	const options = complete(cursor).map(({ label, detail, insert, info }) => ({
		label,
		...(detail !== undefined && { detail }),
		...(insert !== undefined && { apply: insert }),
		...(info !== undefined && { info }),
	}));
	return { from: context.pos - cursor.word.length, options, validFor: /^[\w./-]*$/ };
}

function diagnosticOf({ position, path, message }: Problem, doc: Text): Diagnostic {
	const line = doc.line(Math.min(doc.lines, position.line));
	const from = Math.min(line.to, line.from + position.column - 1);
	return {
		...{ from, to: Math.max(from, line.to), severity: "error" },
		message: path === "" ? message : `${path}: ${message}`,
	};
}
