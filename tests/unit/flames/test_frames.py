"""Frames have the same name in both arms, whatever the JVM and Spark numbered."""

from __future__ import annotations

import pytest

from nexmark.flames.jfr import frame_name, kind, label, plain, thread_name

EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"


@pytest.mark.parametrize(
    ("method", "name"),
    [
        (
            f"{EXPRESSIONS}.GeneratedClass$GeneratedIteratorForCodegenStage12.processNext",
            f"{EXPRESSIONS}.GeneratedClass$GeneratedIteratorForCodegenStage.processNext",
        ),
        (
            f"{EXPRESSIONS}.GeneratedClass$GeneratedIteratorForCodegenStage5.hashAgg_doConsume_1$",
            f"{EXPRESSIONS}.GeneratedClass$GeneratedIteratorForCodegenStage.hashAgg_doConsume_1",
        ),
        ("a.B$$Lambda$1234/0x0000000801a2b3c4.apply", "a.B$$Lambda.apply"),
        ("a.B$$Lambda/0x0000000801a2b3c4.apply", "a.B$$Lambda.apply"),
        ("a.B$$Lambda$1234.apply", "a.B$$Lambda.apply"),
        ("a.B$$Lambda.0x00007f0a01a2b3c4.apply", "a.B$$Lambda.apply"),
        (
            "java.lang.invoke.LambdaForm$DMH/0x0000000800c02400.invokeStatic",
            "java.lang.invoke.LambdaForm$DMH.invokeStatic",
        ),
        (
            "jdk.internal.reflect.GeneratedMethodAccessor13.invoke",
            "jdk.internal.reflect.GeneratedMethodAccessor.invoke",
        ),
        ("jdk.proxy2.$Proxy41.run", "jdk.proxy.$Proxy.run"),
        ("org.apache.spark.rdd.RDD.$anonfun$map$2", "org.apache.spark.rdd.RDD.$anonfun$map"),
        (
            "org.apache.spark.rdd.RDD.$anonfun$map$2$adapted",
            "org.apache.spark.rdd.RDD.$anonfun$map",
        ),
        ("org.apache.spark.util.Utils$.timeTakenMs", "org.apache.spark.util.Utils$.timeTakenMs"),
        ("java.util.HashMap.getNode", "java.util.HashMap.getNode"),
        ("a.B.m;n\nx", "a.B.m n x"),
    ],
)
def test_what_is_numbered_as_it_comes_is_left_out(method: str, name: str) -> None:
    assert frame_name(method) == name


@pytest.mark.parametrize(
    ("thread", "name"),
    [
        ("Executor task launch worker-0", "Executor task launch worker"),
        (
            "Executor task launch worker for task 12.0 in stage 3.0 (TID 45)",
            "Executor task launch worker",
        ),
        ("rpc-client-3-2", "rpc-client"),
        ("state-store-maintenance-low-priority-7", "state-store-maintenance-low-priority"),
        ("main", "main"),
        ("", "thread"),
        ("7", "thread"),
    ],
)
def test_threads_of_a_pool_are_one(thread: str, name: str) -> None:
    assert thread_name(thread) == name


def test_nothing_in_a_name_breaks_a_line_of_collapsed_stacks() -> None:
    assert plain("a;b\tc\n") == "a b c"


def test_a_label_is_class_and_method() -> None:
    assert label("java.util.HashMap.getNode") == "HashMap.getNode"
    generated = f"{EXPRESSIONS}.GeneratedClass$GeneratedIteratorForCodegenStage.processNext"
    assert label(generated) == "GeneratedIteratorForCodegenStage.processNext"
    assert label("java.io.FileOutputStream.open0 (native)") == "FileOutputStream.open0 (native)"
    assert label("Executor task launch worker") == "Executor task launch worker"


def test_whose_code_a_frame_is() -> None:
    assert kind(f"{EXPRESSIONS}.GeneratedClass$SpecificOrdering.compare") == "generated"
    assert kind("org.apache.spark.rdd.RDD.iterator") == "spark"
    assert kind("java.io.FileOutputStream.open0 (native)") == "jdk"
    assert kind("org.apache.hadoop.util.Shell.run") == "other"
    assert kind("Executor task launch worker") == "thread"
