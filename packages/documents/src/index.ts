export { commentOf } from "@plinth/proto-comments";
export { conditionsOf, type ReportedCondition, stateName } from "./conditions.ts";
export { effectOf, nameOfKey, obstaclesOf, outcomeOf, waitsOf } from "./deletion-plan.ts";
export { isOfServer, reasonOf, referencesFinalizer } from "./deletion-reasons.ts";
export { changedField, type FieldChange, fieldChanges } from "./field-changes.ts";
export { isObject, isSameJson, ownField } from "./json.ts";
export {
	idAt,
	type KnownType,
	KnownTypes,
	loadTypes,
	type Place,
	tenancyAt,
} from "./known-types.ts";
export { describeProblem, fieldPath, type Position, type Problem } from "./position.ts";
export { ruleName } from "./rule-name.ts";
export { scalarName } from "./scalar-name.ts";
export { quoted } from "./shortened.ts";
export { contentOf, documentOf, type ShownData, showData } from "./show-document.ts";
export { columnsOf, type DataColumn, valueAt, wideColumnsOf } from "./type-columns.ts";
