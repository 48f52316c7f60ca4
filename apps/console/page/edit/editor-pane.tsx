import { ErrorNotice } from "../parts/error-notice.tsx";
import { commentAt, completionsAt } from "./completions.ts";
import { ConflictList } from "./conflict-list.tsx";
import { DiffView } from "./diff-view.tsx";
import { type Editing, type EditingOptions, useEditing } from "./use-editing.ts";
import { YamlEditor } from "./yaml-editor.tsx";

/** An editor of one resource: the document at the left, and what is wrong with it or what it changes at the right. */
export function EditorPane(options: EditingOptions) {
	const { type, types } = options;
	const editing = useEditing(options);
	// Nobody has written yet what is wrong with it.
	const isUntouched = editing.isNew && editing.text === options.initialText;
	return (
		<div className="editor-pane">
			<div className="editor-side">
				<YamlEditor
					label={editing.isNew ? "The new resource" : "The resource"}
					value={editing.text}
					problems={isUntouched ? [] : editing.problems}
					complete={(cursor) => completionsAt(cursor, type, types)}
					commentOn={(key) => commentAt(key, type)}
					onChange={editing.setText}
					onReview={editing.review}
				/>
			</div>
			<section className="editor-side review" aria-label="Review">
				<ReviewActions editing={editing} />
				{isUntouched ? (
					<p className="muted">
						Fill in the name and the data.
						<span className="for-keyboards">
							{" "}
							<kbd>Ctrl Space</kbd> offers fields and values.
						</span>
					</p>
				) : (
					<Findings editing={editing} />
				)}
			</section>
		</div>
	);
}

function ReviewActions({ editing }: { readonly editing: Editing }) {
	const { problems, conflicts, before, after, isNew, isPending, review, apply } = editing;
	const isReviewed = after !== undefined;
	return (
		<div className="editor-actions">
			<button
				type="button"
				className={isReviewed ? undefined : "primary"}
				disabled={problems.length > 0 || conflicts.length > 0 || isPending}
				onClick={review}
			>
				Review
			</button>
			<button
				type="button"
				className={isReviewed ? "primary" : undefined}
				disabled={!isReviewed || after === before || isPending}
				onClick={apply}
			>
				{isNew ? "Create" : "Apply"}
			</button>
			<span className="muted">
				{isReviewed ? (
					`Valid: the server accepts ${isNew ? "it" : "the change"}.`
				) : (
					<>
						<span className="for-keyboards">
							<kbd>Ctrl Enter</kbd> reviews.{" "}
						</span>
						Nothing is stored until you {isNew ? "create" : "apply"} it.
					</>
				)}
			</span>
		</div>
	);
}

/** What is wrong with the document, and what it changes. */
function Findings({ editing }: { readonly editing: Editing }) {
	const { problems, error, merged, conflicts, isOutdated, before, after } = editing;
	return (
		<>
			{problems.length > 0 && (
				<ul className="problems" aria-label="Problems">
					{problems.map(({ position, path, message }) => (
						<li key={`${position.line} ${path} ${message}`}>
							<span className="muted">line {position.line}:</span> <bdi>{path}</bdi>{" "}
							<bdi>{message}</bdi>
						</li>
					))}
				</ul>
			)}
			{error !== null && (
				<ErrorNotice error={error} what="the resource" verb={editing.isNew ? "create" : "change"} />
			)}
			{merged !== "" && (
				<p className="notice unsure" role="status">
					{merged}
				</p>
			)}
			<ConflictList conflicts={conflicts} onChoose={editing.choose} />
			{isOutdated && (
				<p className="notice unsure" role="status">
					It has changed since you began.
					<button type="button" disabled={problems.length > 0} onClick={editing.mergeNewest}>
						Merge
					</button>
				</p>
			)}
			{after !== undefined &&
				(after === before ? (
					<p className="muted">Nothing changes.</p>
				) : (
					<DiffView label="What changes" before={before} after={after} />
				))}
		</>
	);
}
