//! What a program needs to serve: a listener, the one for operators, its health, its stop, and its open files.

pub mod descriptors;
pub mod health;
pub mod listener;
pub mod management;
pub mod service_manager;
pub mod shutdown;
