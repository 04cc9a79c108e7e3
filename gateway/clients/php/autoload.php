<?php

// Loads the library's classes in a project without Composer.
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, "Signpost\\") && is_file($file = __DIR__ . "/src/" . substr($class, 9) . ".php")) {
        require $file;
    }
});
