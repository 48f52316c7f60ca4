export * from "@plinth/proto/gen/plinth/type/v1/table_clone.js";
