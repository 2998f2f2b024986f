//! Logging that is silent during replay, so that each line appears once (R4.5 – R4.7).

use super::OrchestrationContext;

/// One log record with the fields every orchestration trace has (R9.40).
macro_rules! record {
    ($level:ident, $ctx:expr, $message:expr $(, $field:ident = $value:expr)?) => {{
        let identity = $ctx.identity();
        tracing::$level!(
            target: "duroxide::orchestration",
            instance_id = %identity.instance_id,
            execution_id = %identity.execution_id,
            orchestration_name = %identity.orchestration_name,
            orchestration_version = %identity.orchestration_version,
            $($field = %$value,)?
            "{}",
            $message
        );
    }};
}

impl OrchestrationContext {
    /// Logs at INFO.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
    ///     ctx.trace_info(format!("charging {item}")); // Once, however often this runs again.
    ///     ctx.schedule_activity("Charge", item).await
    /// }
    /// ```
    pub fn trace_info(&self, message: impl Into<String>) {
        self.trace("INFO", message);
    }

    /// Logs at WARN.
    pub fn trace_warn(&self, message: impl Into<String>) {
        self.trace("WARN", message);
    }

    /// Logs at ERROR.
    pub fn trace_error(&self, message: impl Into<String>) {
        self.trace("ERROR", message);
    }

    /// Logs at DEBUG.
    pub fn trace_debug(&self, message: impl Into<String>) {
        self.trace("DEBUG", message);
    }

    /// Logs at a level given by name; an unknown one is kept as a field.
    pub fn trace(&self, level: impl Into<String>, message: impl Into<String>) {
        if self.is_replaying() {
            return;
        }
        let (level, message) = (level.into(), message.into());
        match level.to_uppercase().as_str() {
            "INFO" => record!(info, self, message),
            "WARN" => record!(warn, self, message),
            "ERROR" => record!(error, self, message),
            "DEBUG" => record!(debug, self, message),
            _ => record!(trace, self, message, level = level),
        }
    }
}
